"""Time, as the rest of faircopy is given it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that people and timestamps mean, one that never jumps."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump; never measure a duration with it."""

    def steady_ms(self) -> int:
        """The wall clock as it was when the process started, plus the time since: for ages and timeouts.

        When somebody sets the wall clock, nothing grows old all at once (DESIGN: a clock that jumps deletes nothing).
        """

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed point. Never jumps, never goes back."""


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._started_ms = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000

    def steady_ms(self) -> int:
        return self._started_ms + time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6
