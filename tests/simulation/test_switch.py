"""Connections between machines: what arrives, in which order, and who is told of the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.switch import AGAIN_SECONDS, TOLD_SECONDS, Switch
from tests.simulation.wires import WireEnd

SENT = [bytes([number]) * 9 for number in range(50)]
A_WHILE = 5.0


class Heard(asyncio.Protocol):
    """What one end of a connection hears."""

    def __init__(self) -> None:
        self.data = b""
        self.ends: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, WireEnd)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert not self.ends
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ends.append(exc)

    @property
    def was_reset(self) -> bool:
        return [type(end) for end in self.ends] == [ConnectionResetError]


class Pair:
    """Two machines with a process each; machine 1 listens."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.switch = Switch(loop, 2, random.Random(seed), Coverage())
        self.lives = [Life("0"), Life("1")]
        self.accepted: list[Heard] = []
        for machine, life in enumerate(self.lives):
            self.switch.begin(machine, life)
        self.switch.listen(1, self._accept)

    def _accept(self) -> Heard:
        self.accepted.append(Heard())
        return self.accepted[-1]

    async def connect(self) -> tuple[Heard, Heard]:
        """Both ends of a new connection; the first is that of machine 0."""
        near = Heard()
        await self.switch.connect(0, 1, near)
        return near, self.accepted[-1]

    def begin_anew(self, machine: int) -> Life:
        """Another process begins on a machine."""
        life = self.lives[machine] = Life(f"{machine} again")
        self.switch.begin(machine, life)
        return life


def for_seeds(scene: Callable[[Pair], Awaitable[None]]) -> None:
    """Play a scene with several seeds."""
    for seed in range(10):
        loop = VirtualLoop()

        async def play(loop: VirtualLoop = loop, seed: int = seed) -> None:
            await scene(Pair(loop, seed))

        loop.run(play())
        loop.close()
        assert not loop.failures


def test_everything_arrives_in_order_both_ways() -> None:
    async def scene(pair: Pair) -> None:
        near, far = await pair.connect()
        for data in SENT:
            near.transport.write(data)
            far.transport.write(data[::-1])
            await asyncio.sleep(0.001)
        near.transport.close()
        await asyncio.sleep(A_WHILE)
        assert far.data == b"".join(SENT)
        assert near.ends == far.ends == [None]

    for_seeds(scene)


def test_nobody_listens() -> None:
    async def scene(pair: Pair) -> None:
        with pytest.raises(ConnectionRefusedError):
            await pair.switch.connect(1, 0, Heard())
        pair.lives[1].end()
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()

    for_seeds(scene)


def test_what_a_silent_way_holds_arrives_later() -> None:
    async def scene(pair: Pair) -> None:
        near, far = await pair.connect()
        near.transport.write(SENT[0])
        pair.switch.fall_silent(0, 1)
        for data in SENT[1:]:
            near.transport.write(data)
            far.transport.write(data)
        await asyncio.sleep(A_WHILE)
        assert far.data == b""
        assert near.data == b"".join(SENT[1:])
        pair.switch.heal(0, 1)
        near.transport.write(b"and more")
        await asyncio.sleep(A_WHILE)
        assert far.data == b"".join(SENT) + b"and more"
        assert near.ends == far.ends == []

    for_seeds(scene)


def test_who_waits_in_vain_gives_up_and_the_other_end_is_reset() -> None:
    async def scene(pair: Pair) -> None:
        pair.switch.fall_silent(1, 0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(A_WHILE):
                await pair.connect()
        pair.switch.heal(1, 0)
        await asyncio.sleep(A_WHILE)
        assert pair.accepted[0].was_reset

    for_seeds(scene)


@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_a_cut_resets_both_ends_and_loses_one_way_only(way: tuple[int, int]) -> None:
    async def scene(pair: Pair) -> None:
        ends = await pair.connect()
        pair.switch.cut(*way)
        for number, end in enumerate(ends):
            end.transport.write(bytes([number]))
        pair.switch.heal(*way)
        for end in ends:
            end.transport.write(b"more")
        await asyncio.sleep(TOLD_SECONDS)
        assert all(end.was_reset for end in ends)
        assert ends[way[1]].data == b""
        assert (await pair.connect())[1] is not ends[1]

    for_seeds(scene)


def test_there_is_no_connection_over_a_way_that_is_cut() -> None:
    async def scene(pair: Pair) -> None:
        pair.switch.cut(1, 0)
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()

    for_seeds(scene)


def test_what_was_on_its_way_when_the_way_was_cut_never_arrives() -> None:
    async def scene(pair: Pair) -> None:
        call = asyncio.create_task(pair.connect())
        await asyncio.sleep(0)
        pair.switch.cut(0, 1)
        await asyncio.sleep(A_WHILE)
        pair.switch.heal(0, 1)
        await asyncio.sleep(A_WHILE)
        assert pair.accepted == []
        call.cancel()

    for_seeds(scene)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_process_that_is_killed_resets_its_connections(killed: int) -> None:
    async def scene(pair: Pair) -> None:
        ends = await pair.connect()
        ends[killed].transport.write(b"last words")
        pair.lives[killed].end()
        await asyncio.sleep(A_WHILE)
        left, gone = ends[1 - killed], ends[killed]
        assert left.was_reset
        assert left.data in (b"last words", b"last words"[: len(left.data)])
        assert gone.ends == []

    for_seeds(scene)


def test_a_machine_without_power_says_nothing_until_it_is_up_again() -> None:
    async def scene(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.lives[1].end(silently=True)
        near.transport.write(b"are you there?")
        await asyncio.sleep(60)
        assert near.ends == []
        pair.begin_anew(1)
        await asyncio.sleep(AGAIN_SECONDS + 1)
        assert near.was_reset
        assert far.data == b""

    for_seeds(scene)


def test_who_sends_nothing_to_a_machine_that_lost_power_is_never_told() -> None:
    async def scene(pair: Pair) -> None:
        near, _ = await pair.connect()
        pair.lives[1].end(silently=True)
        pair.begin_anew(1)
        await asyncio.sleep(60)
        assert near.ends == []
        near.transport.write(b"are you there?")
        await asyncio.sleep(A_WHILE)
        assert near.was_reset

    for_seeds(scene)


def test_what_arrives_for_a_stopped_process_waits() -> None:
    async def scene(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.lives[1].pause()
        for data in SENT:
            near.transport.write(data)
        second = Heard()
        await pair.switch.connect(0, 1, second)
        await asyncio.sleep(A_WHILE)
        assert (far.data, near.ends) == (b"", [])
        pair.lives[1].resume()
        await asyncio.sleep(0)
        assert far.data == b"".join(SENT)

    for_seeds(scene)


def test_a_process_that_ends_while_it_is_stopped_hears_nothing() -> None:
    async def scene(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.lives[1].pause()
        near.transport.write(SENT[0])
        await asyncio.sleep(A_WHILE)
        pair.lives[1].end()
        pair.lives[1].resume()
        await asyncio.sleep(A_WHILE)
        assert far.data == b""
        assert near.was_reset

    for_seeds(scene)
