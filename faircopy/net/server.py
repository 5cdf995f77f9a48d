"""The front door: accepting connections, and limits over all of them."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections import Counter
from collections.abc import Callable

from faircopy.errors import FaircopyError
from faircopy.net.connection import Connection, Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.net.listeners import Listener
from faircopy.settings.table import Settings
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk

FRAME_GRACE_MS, FRAME_BYTES_PER_SECOND = 60_000, 16 << 10
# While others wait for the memory that frames hold:
CROWDED_GRACE_MS, CROWDED_BYTES_PER_SECOND = 5_000, 64 << 10
CROWDED_AGE_MS = 30_000
SWEEP_SECONDS = 5.0
BACKLOG = 1024
COMPLAINTS_PER_SWEEP = 20

log = logging.getLogger(__name__)


class TooSlow(FaircopyError):
    """A client does not finish what it began to send."""


class Server:
    """All connections of a broker."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        disk: Disk,
        handle: Callable[[Exchange, memoryview], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._loop = loop
        self._disk = disk
        self._handle = handle
        self._connections: dict[Connection, None] = {}
        self._by_address: Counter[str] = Counter()
        self._waiting_for_room: list[Connection] = []
        self._numbers = 0
        self._complaints = 0
        self.listeners: list[Listener] = []
        self._accepting: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._favoured: Connection | None = None
        self._is_giving_room = False
        self.in_flight_bytes = 0  # of requests that are worked on
        self.receiving_bytes = 0  # that have arrived of frames that are being received, or wait

    async def serve(self, bound: list[tuple[Listener, socket.socket]]) -> None:
        """Accept connections on what `bind_all` has taken."""
        for listener, taken in bound:
            accept = functools.partial(self.accept, listener)
            self._accepting.append(await self._loop.create_server(accept, sock=taken, backlog=BACKLOG))
            self.listeners.append(listener)
        self._sweep()

    def accept(self, listener: Listener) -> Connection:
        """What serves a client that comes in there."""
        self._numbers += 1
        return Connection(self, listener, self._numbers, self._handle)

    # -- the connections' calls ----------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        full = self._full(connection)
        if full:
            self.complain(connection, FaircopyError(f"too many connections (setting {full})"))
            connection.abort()
            return
        self._connections[connection] = None
        self._by_address[connection.peer] += 1
        log.debug("connection %d of %s opened, by %s", connection.number, connection.peer, connection.listener)

    def _full(self, connection: Connection) -> str:
        """The setting that allows no further connection; empty if there is none."""
        if len(self._connections) >= self.settings.connections_max:
            return "connections.max"
        is_full = self._by_address[connection.peer] >= self.settings.max_connections_per_ip
        return "max.connections.per.ip" if is_full else ""

    def closed(self, connection: Connection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            self._by_address[connection.peer] -= 1
            if not self._by_address[connection.peer]:
                del self._by_address[connection.peer]
        log.debug("connection %d of %s closed", connection.number, connection.peer)

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._connections)

    @property
    def has_room(self) -> bool:
        """Whether another request may be worked on."""
        return self.in_flight_bytes < self.settings.requests_in_flight_max_bytes

    @property
    def is_crowded(self) -> bool:
        """Whether frames that are being received hold all the memory that they may."""
        return self.receiving_bytes >= self.settings.requests_in_flight_max_bytes

    def may_grow(self, connection: Connection) -> bool:
        """Whether a frame that is being received may take more memory.

        When frames hold all there is to have, one of them still may, so that not all wait for one another. If it is
        slow it loses its connection with the next sweep, and another one may.
        """
        if not self.is_crowded:
            return True
        if self._favoured is None:
            self._favoured = connection
        return self._favoured is connection

    def frame_is_over(self, connection: Connection) -> None:
        """A frame was received, or given up."""
        if self._favoured is connection:
            self._favoured = None
        self.gave_room()

    def wait_for_room(self, connection: Connection) -> None:
        if connection not in self._waiting_for_room:
            self._waiting_for_room.append(connection)

    def gave_room(self) -> None:
        """Something is done: let those look again that wait for room."""
        if self._waiting_for_room and not self._is_giving_room:
            self._is_giving_room = True
            self._loop.call_soon(self._give_room)

    def _give_room(self) -> None:
        self._is_giving_room = False
        waiting, self._waiting_for_room = self._waiting_for_room, []
        for connection in waiting:
            connection.proceed()

    def send_from_files(
        self, descriptor: int, pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        """Send a response through a socket whose transport is silent."""
        return FileSender(descriptor, pieces, self._disk, self._loop, done)

    def complain(self, connection: Connection, error: Exception) -> None:
        """Log what is wrong with a client, but let no client fill the log."""
        self._complaints += 1
        if self._complaints <= COMPLAINTS_PER_SWEEP:
            log.warning("closing the connection of %s: %s", connection.peer, str(error)[:500])

    # -- upkeep --------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Close connections that idle, or that do not finish what they began to send."""
        self._complaints = 0
        now_ms = self.clock.monotonic_ms()
        pace = (FRAME_GRACE_MS, FRAME_BYTES_PER_SECOND)
        others_wait = self.is_crowded and bool(self._waiting_for_room)
        if others_wait:
            pace = (CROWDED_GRACE_MS, CROWDED_BYTES_PER_SECOND)
        for connection in list(self._connections):
            silent_ms = now_ms - connection.active_ms
            if connection.is_idle and silent_ms > self.settings.connections_idle_ms:
                connection.close()
            elif connection.is_slow_to_send(*pace):
                self.complain(connection, TooSlow(f"its request comes at less than {pace[1]} bytes a second"))
                connection.abort()
        if others_wait:
            self._make_room(now_ms)
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _make_room(self, now_ms: float) -> None:
        """Give up the oldest frames until half of the memory is free, whyever they were not finished.

        They may wait for the broker themselves; but those that fill its memory on purpose can't be told from others.
        """
        old = [
            connection
            for connection in self._connections
            if connection.received_bytes
            and connection is not self._favoured
            and now_ms - connection.frame_began_ms > CROWDED_AGE_MS
        ]
        excess_bytes = self.receiving_bytes - self.settings.requests_in_flight_max_bytes // 2
        for connection in sorted(old, key=lambda each: each.frame_began_ms):
            if excess_bytes <= 0:
                return
            excess_bytes -= connection.received_bytes
            self.complain(connection, TooSlow("its request has held memory for too long that others wait for"))
            connection.abort()

    async def close(self) -> None:
        """Stop accepting, and close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for accepting in self._accepting:
            accepting.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
        for connection in list(self._connections):
            connection.abort()
