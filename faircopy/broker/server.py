"""The front door: accepting connections, and limits over all of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from faircopy.broker.connection import Connection, Exchange, FromFiles
from faircopy.broker.file_sender import FileSender
from faircopy.broker.settings import Settings, parse_address
from faircopy.errors import FaircopyError
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk

FRAME_DEADLINE_MS = 60_000
SWEEP_SECONDS = 5.0
BACKLOG = 1024
COMPLAINTS_PER_SWEEP = 20

log = logging.getLogger(__name__)


class CannotListen(FaircopyError):
    """The address can't be listened on."""


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
        self._waiting_for_room: list[Connection] = []
        self._numbers = 0
        self._complaints = 0
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._favoured: Connection | None = None
        self._is_giving_room = False
        self.in_flight_bytes = 0  # of requests that are worked on
        self.receiving_bytes = 0  # of frames that are being received, or wait
        self.address = ("", 0)

    async def serve(self, bound: socket.socket) -> None:
        """Accept connections on a socket that `bind` has made."""
        self._listener = await self._loop.create_server(self._accept, sock=bound, backlog=BACKLOG)
        host, _ = parse_address(self.settings.listen, "listen")
        self.address = (host, bound.getsockname()[1])
        self._sweep()

    def _accept(self) -> Connection:
        self._numbers += 1
        return Connection(self, self._numbers, self._handle)

    # -- the connections' calls ----------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        if len(self._connections) >= self.settings.connections_max:
            self.complain(connection, FaircopyError("too many connections (setting connections.max)"))
            connection.abort()
            return
        self._connections[connection] = None

    def closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    @property
    def has_room(self) -> bool:
        """Whether another request may be worked on."""
        return self.in_flight_bytes < self.settings.requests_in_flight_max_bytes

    def may_grow(self, connection: Connection) -> bool:
        """Whether a frame that is being received may take more memory.

        When frames hold all there is to have, one of them still may, so that not all wait for one another.
        """
        if self.receiving_bytes < self.settings.requests_in_flight_max_bytes:
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
        for connection in list(self._connections):
            silent_ms = now_ms - connection.active_ms
            if connection.is_idle and silent_ms > self.settings.connections_idle_ms:
                connection.close()
            elif connection.is_slow_to_send and silent_ms > FRAME_DEADLINE_MS:
                connection.abort()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    async def close(self) -> None:
        """Stop accepting, and close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
        for connection in list(self._connections):
            connection.abort()


def bind(settings: Settings) -> socket.socket:
    """Take the address to listen on, before anything else is touched. Raises CannotListen, BadSetting."""
    host, port = parse_address(settings.listen, "listen")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except socket.gaierror as error:
        raise CannotListen(
            f"can't listen on {settings.listen}: {error.strerror}. Check the host of --listen"
        ) from error
    except OSError as error:
        raise CannotListen(
            f"can't listen on {settings.listen}: {error.strerror}. Another broker may be running there: stop it, or "
            f"choose another address with --listen HOST:PORT (port 0 takes a free one)"
        ) from error
    return bound
