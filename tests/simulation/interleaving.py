"""Runs something else in the middle of a coroutine: at any of its awaits that give way to the loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")


class Interrupted:
    """An awaitable: does `work`, and calls `meanwhile()` once it gives way for the time `moment` (from 0).

    `moments` says afterwards how often it gave way. If that was not often enough, nothing was called.
    """

    def __init__(
        self, work: Coroutine[Any, Any, Result], moment: int, meanwhile: Callable[[], object]
    ) -> None:
        self._work = work
        self._moment = moment
        self._meanwhile = meanwhile
        self.moments = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        step = self._work.send
        value: Any = None
        while True:
            try:
                awaited = step(value)
            except StopIteration as end:
                return end.value
            if self.moments == self._moment:
                self._meanwhile()
            self.moments += 1
            try:
                step, value = self._work.send, (yield awaited)
            except BaseException as error:
                step, value = self._work.throw, error
