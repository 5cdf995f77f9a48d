"""Disk threads on virtual time. A job runs as a whole, at a random time, and reports at another."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from faircopy.storage.disk_pool import DiskPool, Done
from tests.simulation.lying_disk import Crash

QUICK_SECONDS = 0.0005
SLOW_SECONDS = 0.02
ALWAYS_SLOW_SECONDS = 0.05
STUCK_SECONDS = 1.0
SLOW_CHANCE = 0.05
STUCK_CHANCE = 0.002


class SimulatedThreads(DiskPool):
    """Replaces `DiskPool`. At most `threads` jobs are under way at a time.

    If they are slow, which is slower than the network, they make all writes: no write is made at once. So
    requests come between an entry and its write.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: int,
        chosen: random.Random,
        *,
        is_slow: bool = False,
    ) -> None:
        self._loop = loop
        self._chosen = chosen
        self._free = threads
        self._waiting: deque[tuple[Callable[..., Any], tuple[Any, ...], Done]] = deque()
        self._quick_seconds = QUICK_SECONDS
        if is_slow:
            self._quick_seconds = ALWAYS_SLOW_SECONDS
            self.inline_write_bytes = -1

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...], done: Done) -> None:
        self._waiting.append((function, arguments, done))
        self._start()

    def _start(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._loop.call_later(self._delay(), self._carry_out, *self._waiting.popleft())

    def _carry_out(self, function: Callable[..., Any], arguments: tuple[Any, ...], done: Done) -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = function(*arguments), None
        except Crash:
            return
        except BaseException as error:
            outcome = None, error
        self._loop.call_later(self._chosen.random() * self._quick_seconds, self._finish, done, *outcome)

    def _finish(self, done: Done, result: Any, error: BaseException | None) -> None:
        self._free += 1
        self._start()
        done(result, error)

    def _delay(self) -> float:
        draw = self._chosen.random()
        if draw < STUCK_CHANCE:
            return self._chosen.random() * STUCK_SECONDS
        return self._chosen.random() * (SLOW_SECONDS if draw < SLOW_CHANCE else self._quick_seconds)

    def close(self) -> None:
        pass
