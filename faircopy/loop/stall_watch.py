"""A watchdog of the event loop: how often it stalled, and for how long at worst."""

from __future__ import annotations

import asyncio

from faircopy.storage.clock import Clock

INTERVAL_SECONDS = 0.05
STALL_MS = 5.0


class StallWatch:
    """Measures how late a timer fires. `worst_ms` and `stalls` count since the start."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = 0.0
        self.worst_ms = 0.0
        self.stalls = 0

    def start(self) -> None:
        """Start watching."""
        self._due_ms = self._clock.monotonic_ms() + INTERVAL_SECONDS * 1000
        self._timer = self._loop.call_later(INTERVAL_SECONDS, self._fired)

    def _fired(self) -> None:
        late_ms = self._clock.monotonic_ms() - self._due_ms
        self.worst_ms = max(self.worst_ms, late_ms)
        self.stalls += late_ms > STALL_MS
        self.start()

    def stop(self) -> None:
        """Stop watching; the counts stay."""
        if self._timer is not None:
            self._timer.cancel()
