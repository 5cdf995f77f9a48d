"""The loop on a virtual clock: in which order things come, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.simulation.loop import TIMERS_MIN, Deadlock, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_timers_of_one_moment_come_as_they_were_made_each_with_all_that_follows(loop: VirtualLoop) -> None:
    seen: list[str] = []

    def comes(name: str) -> None:
        seen.append(name)
        loop.call_soon(lambda: loop.call_soon(seen.append, f"after {name}"))

    for name in ("first", "second"):
        loop.call_at(1.0, comes, name)
    loop.run(asyncio.sleep(2))
    assert seen == ["first", "after first", "second", "after second"]


def test_the_clock_shows_the_time_of_the_timer_to_the_bit(loop: VirtualLoop) -> None:
    times = [3.3**number / 7 for number in range(-10, 10)]
    seen: list[float] = []
    for time in reversed(times):
        loop.call_at(time, lambda: seen.append(loop.time()))
    loop.run(asyncio.sleep(1e6))
    assert seen == times


def test_the_clock_never_goes_back(loop: VirtualLoop) -> None:
    seen: list[float] = []
    loop.call_at(5.0, lambda: loop.call_at(3.0, lambda: seen.append(loop.time())))
    loop.run(asyncio.sleep(10))
    assert seen == [5.0]


def test_cancelled_timers_take_no_memory_for_long(loop: VirtualLoop) -> None:
    for _ in range(10 * TIMERS_MIN):
        loop.call_later(3_600, lambda: None).cancel()
    assert len(loop._timers) <= TIMERS_MIN


def test_waiting_for_what_never_comes_is_a_deadlock(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await loop.create_future()

    with pytest.raises(Deadlock):
        loop.run(wait())
