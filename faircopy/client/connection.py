"""The command line's client: one blocking connection, one request at a time, of any API."""

from __future__ import annotations

import socket
from typing import Any

from faircopy.client.errors import ConnectionFailed, request_failed
from faircopy.wire.address import BadAddress, parse_address
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_request
from faircopy.wire.schema import Schema

CLIENT_ID = "faircopy-cli"
FRAME_BYTES_MAX = 256 << 20

# What to do when a request names something that does not exist.
ABSENT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is none; faircopy topics list shows what there is",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is none; faircopy groups list shows what there is",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is none; faircopy txn list --all shows what there is",
}


class BrokerConnection:
    """One connection to one broker. Use it as a context manager."""

    def __init__(self, address: str, timeout_seconds: float = 30.0) -> None:
        try:
            host, port = parse_address(address)
        except BadAddress as error:
            raise ConnectionFailed(f"--broker is {error}") from error
        self._address = address
        try:
            self._socket = socket.create_connection((host, port), timeout_seconds)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConnectionFailed(
                f"can't reach a broker on {address}: {reason}. Is one running (faircopy start)? "
                f"Another address is given with --broker HOST:PORT"
            ) from error
        self._correlation_id = 0

    def __enter__(self) -> BrokerConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, schema: Schema, version: int, body: dict[str, Any]) -> Message:
        """Send a request and return the response's body. Raises ConnectionFailed."""
        self._correlation_id += 1
        try:
            self._socket.sendall(encode_request(schema, version, self._correlation_id, CLIENT_ID, body))
            size = int.from_bytes(self._receive(4), "big")
            if size > FRAME_BYTES_MAX:
                raise ConnectionFailed(f"{self._address} does not answer like a Kafka broker")
            frame = self._receive(size)
        except OSError as error:
            raise ConnectionFailed(
                f"the connection to {self._address} broke: {error.strerror or error}"
            ) from error
        return decode_response(schema, version, memoryview(frame))[1]

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(min(size - len(received), 1 << 20))
            if not piece:
                raise ConnectionFailed(
                    f"{self._address} closed the connection: does a Kafka broker listen there?"
                )
            received += piece
        return bytes(received)


def ensure_reachable(address: str) -> None:
    """Raise ConnectionFailed at once if nothing accepts connections; a Kafka client would keep trying."""
    with BrokerConnection(address):
        pass


def ensure_ok(code: int, message: str | None, doing: str) -> None:
    """Raise RequestFailed if a response has an error."""
    if code:
        known = ErrorCode(code) if code in list(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
        raise request_failed(code, ABSENT.get(known) or message, doing)
