"""One connection to one broker. Requests are pipelined; the broker answers them in order."""

from __future__ import annotations

import asyncio
import contextlib
import os

from faircopy.client.errors import ConnectionFailed
from faircopy.client.protocol import Request
from faircopy.wire.address import Address
from faircopy.wire.codec import Body, Message
from faircopy.wire.messages import decode_response, encode_request

FRAME_BYTES_MAX = 256 << 20


class Link:
    """An open connection. When it breaks, everything that waits for an answer fails."""

    def __init__(
        self, address: Address, client_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._failure: ConnectionFailed | None = None
        self._receiving = asyncio.get_running_loop().create_task(self._receive())

    @classmethod
    async def open(cls, address: Address, client_id: str, timeout_seconds: float) -> Link:
        """Connect. Raises ConnectionFailed."""
        try:
            async with asyncio.timeout(timeout_seconds):
                reader, writer = await asyncio.open_connection(address.host, address.port)
        except (OSError, UnicodeError) as error:
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else str(error) or type(error).__name__
            raise ConnectionFailed(f"can't reach a broker on {address}: {reason}") from error
        return cls(address, client_id, reader, writer)

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._failure is None

    async def ask(self, request: Request, body: Body, timeout_seconds: float) -> Message:
        """Send a request, and return the body of its response. Raises ConnectionFailed."""
        if self._failure is not None:
            raise self._failure
        self._correlation_id += 1
        number = self._correlation_id
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(encode_request(request.schema, request.version, number, self._client_id, body))
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._drain()
                frame = await answer
        except TimeoutError:
            # A late answer would be taken for that of a later request if the link were used again.
            self._fail(f"{self.address} did not answer {request.schema.name} in {timeout_seconds:g} s")
            raise ConnectionFailed(str(self._failure)) from None
        finally:
            self._waiting.pop(number, None)
        return decode_response(request.schema, request.version, memoryview(frame))[1]

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            self._fail(f"the connection to {self.address} broke: {error.strerror or error}")

    async def _receive(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                if not 4 <= size <= FRAME_BYTES_MAX:
                    self._fail(f"{self.address} does not answer like a Kafka broker")
                    return
                frame = await self._reader.readexactly(size)
                waiting = self._waiting.get(int.from_bytes(frame[:4], "big"))
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
        except (OSError, asyncio.IncompleteReadError) as error:
            reason = "the broker closed it" if isinstance(error, EOFError) else error
            self._fail(f"the connection to {self.address} broke: {reason}")

    def _fail(self, reason: str) -> None:
        """Use this link no more."""
        if self._failure is None:
            self._failure = ConnectionFailed(reason)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionFailed(reason))
                waiting.exception()  # nobody may be waiting any more
        self._writer.close()

    async def close(self) -> None:
        """Close the connection."""
        self._fail(f"the connection to {self.address} was closed here")
        self._receiving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._receiving
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
