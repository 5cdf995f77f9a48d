"""Time, as the rest of faircopy is given it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that people and timestamps mean, one that never jumps."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump; never measure a duration with it."""

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed point. Never jumps, never goes back."""


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6
