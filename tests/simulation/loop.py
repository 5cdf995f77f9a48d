"""An event loop on a virtual clock: it never waits, and the same callbacks always run in the same order.

Each part of a simulation has a `Life`. Everything that belongs to a life runs in a context that names it:
callbacks, timers and tasks inherit the context of their creator. It all stops at once when the life ends,
without any `finally`, as with kill -9.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import inspect
from asyncio.events import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, Unpack

from tests.simulation.lying_disk import Crash

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Life:
    """Whether a part still runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_over = False
        self._waiting: list[asyncio.Future[None]] = []
        self.context = contextvars.copy_context()
        self.context.run(_life.set, self)

    def end(self) -> None:
        """Stop everything of this part."""
        self.is_over = True
        for over in self._waiting:
            if not over.done():
                over.set_result(None)

    def over(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when this life ends."""
        over = loop.create_future()
        self._waiting.append(over)
        if self.is_over:
            over.set_result(None)
        return over


_life: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


class Deadlock(RuntimeError):
    """Nothing is due any more, but the awaited result has not come."""


class _Mortal:
    """A handle that does nothing once its life is over."""

    _context: contextvars.Context
    _callback: Callable[..., object]

    def _run(self) -> None:
        life = self._context.get(_life)
        if life is None or not life.is_over:
            super()._run()  # type: ignore[misc]  # of the handle that this is mixed into
        else:
            self.forget()

    def forget(self) -> None:
        """Close the coroutine of a task that never begins; Python would warn that it was never awaited."""
        task = getattr(self._callback, "__self__", None)
        coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
        if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


class _MortalHandle(_Mortal, Handle):
    pass


class _MortalTimer(_Mortal, TimerHandle):
    _scheduled: bool


class _Idle:
    """Replaces a selector: waiting moves the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock(f"nothing is due after {self._loop.time():.6f} s")
        self._loop.now += timeout
        return []

    def close(self) -> None:
        pass


class VirtualLoop(asyncio.BaseEventLoop):
    """`now` are the seconds since the simulation began."""

    # A part of asyncio's own loop that its published types leave out.
    _ready: deque[Handle]
    _scheduled: list[TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.failures: list[dict[str, Any]] = []
        self._selector = _Idle(self)
        self.set_exception_handler(self._note)

    def _note(self, _loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
        # Tasks of lives that are over are never finished.
        is_end = "destroyed but it is pending" in failure["message"] or isinstance(
            failure.get("exception"), Crash
        )
        if not is_end:
            self.failures.append(failure)

    def time(self) -> float:
        return self.now

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Run until `main` is done. Raises Deadlock."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(main)
        finally:
            asyncio.set_event_loop(None)
            for handle in self._ready:
                if isinstance(handle, _Mortal):
                    handle.forget()

    def _call_soon(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> Handle:
        handle = _MortalHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        timer = _MortalTimer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def _check_closed(self) -> None:
        # Python finishes the remains of dead brokers when it collects them, perhaps after the end of their
        # world. They release locks on the way, which wakes others. If that failed, they would log it in the
        # midst of the next world, which listens to what a broker logs.
        pass

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
