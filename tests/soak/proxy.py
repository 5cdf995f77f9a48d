"""A proxy between all clients and the broker, which knows the protocol's requests and mistreats them.

A request is a frame: size (4 bytes), API key (2), API version (2), correlation id (4), the rest. Its
response: size (4), correlation id (4), the rest. Requests of a connection are answered in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from tests.soak.weather import Fate

HOST = "127.0.0.1"
DELAY_SECONDS_MAX = 0.4
LATE_SECONDS_MAX = 2.0
SIZE_BYTES = 4
# Where the correlation id is.
REQUEST = 8
RESPONSE = 4
DISCARDED_BYTES_MAX = 1 << 16
OLDER_CONNECTIONS = 4
"""Connections for what a network delivers late, long after their client has replaced them. Each delivers one
request: what was left on a connection was in flight when its client gave it up, so it can't be of two
transactions.
"""
# Clients count up from 0, so these never collide with theirs.
OUR_FIRST_CORRELATION_ID = 1 << 30

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Fates(Protocol):
    """What chooses the fates of requests, and for how long they are delayed."""

    chosen: random.Random
    is_calm: bool

    def fate_of(self, api_key: int) -> Fate | None:
        """The fate of the next request; None if nothing happens to it."""


class Proxy:
    """Listens on a free port of the loopback interface once it is entered; `target` is the broker's port.
    Each link has so many `older` connections to the broker, for requests that are replayed.
    """

    def __init__(self, weather: Fates, *, older: int = OLDER_CONNECTIONS) -> None:
        self.weather = weather
        self._older = older
        self.target = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task that ends with the proxy."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.spawn(self._serve((reader, writer)))

    async def _serve(self, client: Stream) -> None:
        with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
            opened.enter_context(closed(client[1]))
            connections = []
            for _ in range(self._older + 1):
                connections.append(await asyncio.open_connection(HOST, self.target))
                opened.enter_context(closed(connections[-1][1]))
            await Link(self, client, connections[:-1], connections[-1]).run()


class Link:
    """One client's connection, and its connections to the broker."""

    def __init__(self, proxy: Proxy, client: Stream, older: list[Stream], broker: Stream) -> None:
        self._proxy = proxy
        self._weather = proxy.weather
        self._client = client
        self._older = older
        self._broker = broker
        self._correlation_ids = itertools.count(OUR_FIRST_CORRELATION_ID)
        self._unwanted: set[int] = set()  # responses that are not passed on
        self._last: int | None = None  # the response that is lost, with the connection
        self._is_late = False

    async def run(self) -> None:
        """Run until either end closes its connection, or it is cut."""
        both = [self._proxy.spawn(self._pass_requests()), self._proxy.spawn(self._pass_responses())]
        unheard = [self._proxy.spawn(discard_responses(*older)) for older in self._older]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self._is_late:
                await asyncio.wait(both)
        finally:
            for task in (*both, *unheard):
                task.cancel()

    # -- requests --------------------------------------------------------------------------------------------

    async def _pass_requests(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(self._client[0])
                if not await self._pass_request(frame):
                    return

    async def _pass_request(self, frame: bytes) -> bool:
        """Pass on a request. Returns False if it was the connection's last one."""
        fate = self._weather.fate_of(int.from_bytes(frame[4:6], "big"))
        match fate:
            case Fate.DELAYED:
                await asyncio.sleep(self._weather.chosen.random() * DELAY_SECONDS_MAX)
            case Fate.CUT_BEFORE:
                return False
            case Fate.CUT_AFTER:
                self._last = correlation_id_of(frame, REQUEST)
            case Fate.LATE:
                await self._deliver_late(frame)
                return False
            case Fate.REPEATED:
                frame += self._renumbered(frame)
            case Fate.REPLAYED:
                if self._older:
                    self._proxy.spawn(self._replay(frame, self._older.pop()))
        await pass_on(frame, self._broker[1])
        return True

    def _renumbered(self, frame: bytes) -> bytes:
        """The same request again, with a response that is not passed on."""
        correlation_id = next(self._correlation_ids)
        self._unwanted.add(correlation_id)
        return frame[:8] + correlation_id.to_bytes(4, "big") + frame[12:]

    async def _deliver_late(self, frame: bytes) -> None:
        """Close the client's end now, and the broker's once the broker has answered."""
        self._is_late = True
        self._last = correlation_id_of(frame, REQUEST)
        self._client[1].close()
        await asyncio.sleep(self._weather.chosen.random() * LATE_SECONDS_MAX)
        await pass_on(frame, self._broker[1])

    async def _replay(self, frame: bytes, older: Stream) -> None:
        await asyncio.sleep(self._weather.chosen.random() * LATE_SECONDS_MAX)
        with contextlib.suppress(OSError):
            await pass_on(frame, older[1])

    # -- responses -------------------------------------------------------------------------------------------

    async def _pass_responses(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(self._broker[0])
                correlation_id = correlation_id_of(frame, RESPONSE)
                if correlation_id == self._last:
                    return
                if correlation_id in self._unwanted:
                    self._unwanted.remove(correlation_id)
                elif not self._is_late:
                    await pass_on(frame, self._client[1])


async def discard_responses(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Discard the responses to replayed requests."""
    with contextlib.suppress(OSError):
        while await reader.read(DISCARDED_BYTES_MAX):
            pass


def correlation_id_of(frame: bytes, position: int) -> int:
    return int.from_bytes(frame[position : position + 4], "big")


async def pass_on(frame: bytes, writer: asyncio.StreamWriter) -> None:
    """Write a frame. Raises ConnectionResetError if the other end is gone."""
    if writer.is_closing():
        raise ConnectionResetError
    writer.write(frame)
    await writer.drain()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read a frame, including its size. Raises IncompleteReadError at the end of the stream."""
    size = await reader.readexactly(SIZE_BYTES)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


@contextlib.contextmanager
def closed(writer: asyncio.StreamWriter) -> Iterator[None]:
    """Finally close a stream, whatever happens."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            writer.close()
