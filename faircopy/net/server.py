"""The server: accepting connections, limiting them, and closing them."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections.abc import Callable

from faircopy.errors import FaircopyError
from faircopy.net.admission import Admission
from faircopy.net.connection import Connection
from faircopy.net.exchange import Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.net.gate import Gate
from faircopy.net.listeners import Listener
from faircopy.settings.table import Settings
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool

SWEEP_SECONDS = 1.0
BACKLOG = 1024
COMPLAINTS_PER_SWEEP = 5

log = logging.getLogger(__name__)


class Server:
    """All connections of a broker. It is the `Host` of each."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        disk: DiskPool,
        handle: Callable[[Exchange, memoryview], None],
        forget: Callable[[int], None],
        gate: Gate | None = None,
    ) -> None:
        """`handle(exchange, frame)` handles one request. `forget(number)` is called for a connection that is
        over, perhaps twice. If there is a gate, answers leave only while it is open.
        """
        self.settings = settings
        self.clock = clock
        self.admission: Admission[Connection] = Admission(settings)
        self.gate = gate
        self.listeners: list[Listener] = []
        self._loop = loop
        self._disk = disk
        self._handle = handle
        self._forget = forget
        self._numbers = 0
        self._complaints = 0
        self._accepting: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_making_room = False

    async def serve(self, bound: list[tuple[Listener, socket.socket]]) -> None:
        """Accept connections on the listeners and sockets that `bind_all` returned."""
        for listener, taken in bound:
            accept = functools.partial(self.accept, listener)
            self._accepting.append(await self._loop.create_server(accept, sock=taken, backlog=BACKLOG))
            self.listeners.append(listener)
        self._sweep()

    def accept(self, listener: Listener) -> Connection:
        """A new connection for a client of this listener."""
        self._numbers += 1
        return Connection(self, listener, self._numbers, self._handle)

    # -- the connections' calls ------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """A client has connected: accept or refuse it."""
        limit = self.admission.limit_reached(connection.peer)
        if limit:
            self.complain(connection, FaircopyError(f"too many connections (setting {limit})"))
            connection.abort()
            return
        self.admission.open(connection, connection.peer)
        log.debug(
            "connection %d of %s opened, by %s", connection.number, connection.peer, connection.listener
        )

    def closed(self, connection: Connection) -> None:
        """A client has disconnected."""
        self.admission.close(connection)
        log.debug("connection %d of %s closed", connection.number, connection.peer)

    def over(self, connection: Connection) -> None:
        """Nothing more comes of a connection."""
        self._forget(connection.number)

    def room_is_made(self) -> None:
        """Some memory is free again: in the next tick, let the connections that wait for room try again."""
        if not self._is_making_room:
            self._is_making_room = True
            self._loop.call_soon(self._let_waiting_on)

    def _let_waiting_on(self) -> None:
        self._is_making_room = False
        for connection in self.admission.take_waiting():
            connection.proceed()

    def send_from_files(
        self, descriptor: int, pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        """Send a response through a socket whose transport has nothing to send."""
        return FileSender(descriptor, pieces, self._disk, self._loop, done, self.gate)

    def complain(self, connection: Connection, error: Exception) -> None:
        """Log a client's fault, but let no client fill the log."""
        self._complaints += 1
        if self._complaints <= COMPLAINTS_PER_SWEEP:
            log.warning("closing the connection of %s: %s", connection.peer, str(error)[:500])

    # -- upkeep ----------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Close connections that idle, or that do not finish a frame in time."""
        self._complaints = 0
        for connection, fault in self.admission.sweep(self.clock.monotonic_ms()):
            if fault is None:
                connection.close()
            else:
                self.complain(connection, fault)
                connection.abort()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    async def close(self) -> None:
        """Stop accepting, and close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for accepting in self._accepting:
            accepting.close()
        for connection in self.admission.connections:
            connection.close()
        await asyncio.sleep(0)
        for connection in self.admission.connections:
            connection.abort()
