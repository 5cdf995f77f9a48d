"""Headers of messages that another client library has read.

confluent-kafka decodes the names of headers as UTF-8, and destroys memory where one is not. So it is never
asked for headers: they come by a connection of their own, a piece of a partition at a time.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.client.connection import BrokerConnection
from faircopy.client.reading import records_of, whole_batches
from faircopy.wire.records import Headers

FETCH_VERSION = 11
PIECE_BYTES = 1 << 20


class HeaderSource:
    """The headers of messages at a broker. It connects when it is first asked."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opened = ExitStack()
        self._connection: BrokerConnection | None = None
        self._known: dict[tuple[str, int], dict[int, Headers]] = {}

    def of(self, message: Any) -> Headers | None:
        """The headers of a message of confluent-kafka. Where a name is not UTF-8, it has U+FFFD. None if the
        message has been deleted meanwhile. Raises ConnectionFailed, RecordsError.
        """
        place, offset = (message.topic(), message.partition()), message.offset()
        if offset not in self._known.get(place, ()):
            self._known[place] = self._read(*place, offset)
        return self._known[place].get(offset)

    def _read(self, topic: str, partition: int, offset: int) -> dict[int, Headers]:
        """The headers of the messages from this offset on, by offset."""
        if self._connection is None:
            self._connection = self._opened.enter_context(BrokerConnection(self._address))
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": PIECE_BYTES}
        body = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"topic": topic, "partitions": [asked]}]}
        answer = self._connection.ask(FETCH, FETCH_VERSION, body)
        if answer.error_code or not answer.responses:
            return {}
        piece = whole_batches(bytes(answer.responses[0].partitions[0].records or b""), offset)
        return {record.offset: record.headers for record in records_of(piece, offset, piece.next_offset)}

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._opened.close()
