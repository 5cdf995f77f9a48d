"""A clock that moves only when told, with `call_later`."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Timer:
    """A call that is due at a time."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function: Callable[[], None] | None = function

    def cancel(self) -> None:
        self.function = None


class VirtualTime:
    """Milliseconds since some time, as both the clock and the timers of what is tested."""

    def __init__(self) -> None:
        self.milliseconds = 50_000
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()

    def now_ms(self) -> int:
        return self.milliseconds

    def call_later(self, delay_s: float, function: Callable[[], None]) -> Timer:
        timer = Timer(function)
        at_ms = self.milliseconds + round(delay_s * 1000)
        heapq.heappush(self._timers, (at_ms, next(self._numbers), timer))
        return timer

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass, calling what is due."""
        end_ms = self.milliseconds + duration_ms
        while self._timers and self._timers[0][0] <= end_ms:
            at_ms, _, timer = heapq.heappop(self._timers)
            self.milliseconds = max(self.milliseconds, at_ms)
            if timer.function is not None:
                timer.function()
        self.milliseconds = end_ms

    @property
    def pending(self) -> int:
        """Timers that are set and not cancelled."""
        return sum(timer.function is not None for _, _, timer in self._timers)
