"""What surrounds a connection: the host that has accepted it, its transport, and its client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from faircopy.net.admission import Admission
from faircopy.net.connection import Connection
from faircopy.net.exchange import Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.net.gate import Gate
from faircopy.settings.table import Settings
from tests.simulation.network import LISTENER

MIB = 1 << 20


class Sender:
    """In the place of a sender of files: it sends when it is told to."""

    def __init__(self, pieces: FromFiles, done: Callable[[BaseException | None], None]) -> None:
        self.pieces = pieces
        self.done = done
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


class FakeHost:
    """Whoever has accepted the connection, the transport that it has, and the client at its other end."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate
        self.settings = Settings(requests_in_flight_max_bytes=MIB, request_max_bytes=MIB)
        self.clock = cast(Any, self)
        self.admission: Admission[Connection] = Admission(self.settings)
        self.exchanges: list[Exchange] = []
        self.responses: list[bytes] = []
        self.complaints: list[str] = []
        self.is_over = False
        self.senders: list[Sender] = []
        self.is_room_due = False
        self.is_reading = True
        self.is_closed = False
        self.unsent_bytes = 0
        self.connection = Connection(
            self, LISTENER, 1, lambda exchange, _frame: self.exchanges.append(exchange)
        )
        self.connection.connection_made(cast(asyncio.BaseTransport, self))

    # -- the host --------------------------------------------------------------------------------------------

    def monotonic_ms(self) -> float:
        return 0.0

    def opened(self, connection: Connection) -> None:
        self.admission.open(connection, connection.peer)

    def closed(self, connection: Connection) -> None:
        self.admission.close(connection)

    def over(self, connection: Connection) -> None:
        self.is_over = True

    def room_is_made(self) -> None:
        self.is_room_due = True

    def complain(self, _connection: Connection, error: Exception) -> None:
        self.complaints.append(str(error))

    def send_from_files(
        self, _descriptor: int, pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        self.senders.append(Sender(pieces, done))
        return cast(FileSender, self.senders[-1])

    # -- the transport ---------------------------------------------------------------------------------------

    def get_extra_info(self, name: str) -> Any:
        return self if name == "socket" else ("10.0.0.1", 1)

    def fileno(self) -> int:
        return 7

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        if high == 0:
            self.connection.pause_writing()

    def write(self, data: bytes) -> None:
        self.responses.append(bytes(data))

    def writelines(self, buffers: Sequence[bytes]) -> None:
        self.responses.extend(map(bytes, buffers))

    # -- the client ------------------------------------------------------------------------------------------

    def send(self, *requests: bytes) -> None:
        """Send all of these, as long as they are read; at once if they are small."""
        data = b"".join(requests)
        while data and self.is_reading and not self.is_closed:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    def hang_up(self) -> None:
        self.connection.connection_lost(None)


def request(api_key: int, size: int = 10) -> bytes:
    return size.to_bytes(4, "big") + api_key.to_bytes(2, "big") + bytes(size - 2)
