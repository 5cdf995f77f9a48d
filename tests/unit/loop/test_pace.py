"""The pace of requests that ask for much: one that works for long waits for turns; waiting is no work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from faircopy.loop.pace import TURN_MS, Pace, Turns
from faircopy.storage.clock import Clock


class SetClock(Clock):
    """A clock that shows what it was set to."""

    now_ms = 0.0

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def steady_ms(self) -> int:
        return int(self.now_ms)

    def monotonic_ms(self) -> float:
        return self.now_ms


class CountingTurns(Turns):
    """Counts those who wait for a turn."""

    taken = 0

    async def next(self) -> None:
        self.taken += 1
        await super().next()


def turns_taken(request: Callable[[Pace, SetClock], Awaitable[None]]) -> int:
    """How many turns a request waits for."""

    async def main() -> int:
        turns, clock = CountingTurns(asyncio.get_running_loop()), SetClock()
        await request(Pace(turns, clock, lambda: True), clock)
        return turns.taken

    return asyncio.run(main())


def test_who_works_for_long_waits_for_turns() -> None:
    async def request(pace: Pace, clock: SetClock) -> None:
        async for _ in pace.over(range(10)):
            async for _ in pace.over(range(10)):
                clock.now_ms += TURN_MS / 20

    assert turns_taken(request) == 4


def test_what_a_request_has_waited_for_is_no_work() -> None:
    """Neither its turn to start nor the disk: counting these sent 64 commits at once to disk one by one."""

    async def request(pace: Pace, clock: SetClock) -> None:
        for _ in range(3):
            clock.now_ms += 10 * TURN_MS
            async for _ in pace.over(range(2)):
                async for _ in pace.through(range(2)):
                    pass

    assert turns_taken(request) == 0
