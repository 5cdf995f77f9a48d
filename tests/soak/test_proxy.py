"""What each fate does to a request, and what the client sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import pytest

from faircopy.wire.api_keys import ApiKey
from tests.simulation.coverage import Coverage
from tests.soak.proxy import HOST, OLDER_CONNECTIONS, REQUEST, Proxy, closed, correlation_id_of, read_frame
from tests.soak.weather import Fate, Weather

WAIT_SECONDS = 60.0
FIRST, SECOND = (
    OLDER_CONNECTIONS,
    2 * OLDER_CONNECTIONS + 1,
)  # the proxy's connections for those of the client


class FixedWeather(Weather):
    """Gives this fate to the first EndTxns, and to nothing else."""

    def __init__(self, fate: Fate, times: int) -> None:
        super().__init__(random.Random(1), Coverage())
        self._fates = [fate] * times

    def fate_of(self, api_key: int) -> Fate | None:
        return self._fates.pop() if self._fates and api_key == ApiKey.END_TXN else None


class StubBroker:
    """Answers each request with its correlation id, and remembers the connection on which it came."""

    def __init__(self) -> None:
        self.connections = 0
        self.seen: list[tuple[int, bytes]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self.connections = self.connections, self.connections + 1
        with closed(writer), contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                frame = await read_frame(reader)
                self.seen.append((number, frame[12:]))
                writer.write(b"\0\0\0\4" + correlation_id_of(frame, REQUEST).to_bytes(4, "big"))


class Client:
    """One connection to the proxy at a time."""

    def __init__(self, proxy: Proxy, opened: contextlib.ExitStack) -> None:
        self._proxy = proxy
        self._opened = opened

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._proxy.port)
        self._opened.enter_context(closed(self._writer))

    async def ask(self, body: bytes, correlation_id: int) -> int:
        """The correlation id of the answer; -1 if the connection is cut."""
        payload = ApiKey.END_TXN.to_bytes(2, "big") + bytes(2) + correlation_id.to_bytes(4, "big") + body
        self._writer.write(len(payload).to_bytes(4, "big") + payload)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            return int.from_bytes((await read_frame(self._reader))[4:], "big")
        return -1


Scene = Callable[[Client, StubBroker], Awaitable[None]]


def play(fate: Fate, scene: Scene, times: int = 1) -> None:
    async def run() -> None:
        broker = StubBroker()
        server = await asyncio.start_server(broker.serve, HOST, 0)
        async with server, Proxy(FixedWeather(fate, times)) as proxy, asyncio.timeout(WAIT_SECONDS):
            proxy.target = server.sockets[0].getsockname()[1]
            with contextlib.ExitStack() as opened:
                client = Client(proxy, opened)
                await client.connect()
                await scene(client, broker)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)  # all connections that were cut come to their end

    asyncio.run(run())


async def seen(broker: StubBroker, count: int) -> list[tuple[int, bytes]]:
    """What the broker has seen, once that is `count` requests."""
    while len(broker.seen) < count:
        await asyncio.sleep(0.01)
    return broker.seen


def test_a_repeated_request_has_one_answer() -> None:
    async def scene(client: Client, broker: StubBroker) -> None:
        assert [await client.ask(b"end", 1), await client.ask(b"next", 2)] == [1, 2]
        assert await seen(broker, 3) == [(FIRST, b"end"), (FIRST, b"end"), (FIRST, b"next")]

    play(Fate.REPEATED, scene)


@pytest.mark.parametrize(("fate", "arrived"), [(Fate.CUT_BEFORE, []), (Fate.CUT_AFTER, [(FIRST, b"end")])])
def test_a_cut_comes_before_the_request_or_after_it(fate: Fate, arrived: list[tuple[int, bytes]]) -> None:
    async def scene(client: Client, broker: StubBroker) -> None:
        assert await client.ask(b"end", 1) == -1
        assert broker.seen == arrived

    play(fate, scene)


def test_a_late_request_comes_on_a_connection_that_its_client_has_replaced() -> None:
    async def scene(client: Client, broker: StubBroker) -> None:
        assert await client.ask(b"end", 1) == -1
        await client.connect()
        assert await client.ask(b"end again", 1) == 1
        assert sorted(await seen(broker, 2)) == [(FIRST, b"end"), (SECOND, b"end again")]

    play(Fate.LATE, scene)


def test_a_replayed_request_comes_again_on_an_older_connection() -> None:
    async def scene(client: Client, broker: StubBroker) -> None:
        assert [await client.ask(b"end", 1), await client.ask(b"next", 2)] == [1, 2]
        late, *others = sorted(await seen(broker, 3))
        assert late[0] < FIRST and late[1] == b"end"
        assert others == [(FIRST, b"end"), (FIRST, b"next")]

    play(Fate.REPLAYED, scene)


def test_each_replayed_request_comes_on_a_connection_of_its_own() -> None:
    async def scene(client: Client, broker: StubBroker) -> None:
        assert [await client.ask(b"end", number) for number in range(6)] == list(range(6))
        await seen(broker, 6 + OLDER_CONNECTIONS)
        assert sorted(number for number, _ in broker.seen if number < FIRST) == list(range(OLDER_CONNECTIONS))

    play(Fate.REPLAYED, scene, times=6)
