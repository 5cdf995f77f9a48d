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
import itertools
from asyncio.events import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, Unpack

from tests.simulation.lying_disk import Crash

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

TIMERS_MIN = 1_000
"""From so many timers on, those that were cancelled are dropped now and then."""


class Life:
    """Whether a part still runs. A part that is paused does nothing, and later all that has become due."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_running = True
        self.is_over = False
        self.ended_silently = False
        self._kept: list[_Mortal] = []
        self._when_over: list[Callable[[], None]] = []
        self.context = contextvars.copy_context()
        self.context.run(_life.set, self)

    def end(self, *, silently: bool = False) -> None:
        """Stop everything of this part. Silently: as with a loss of power, so that nobody is told."""
        if self.is_over:
            return
        self.is_over, self.is_running, self.ended_silently = True, False, silently
        kept, self._kept = self._kept, []
        for handle in kept:
            handle.forget()
        for told in self._when_over:
            told()

    def when_over(self, told: Callable[[], None]) -> None:
        """Call back when this life ends."""
        if self.is_over:
            told()
        else:
            self._when_over.append(told)

    def over(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when this life ends."""
        over = loop.create_future()
        self.when_over(lambda: None if over.done() else over.set_result(None))
        return over

    def pause(self) -> None:
        """Do nothing until `resume`, as after SIGSTOP."""
        self.is_running = False

    def resume(self) -> None:
        """Go on, beginning with what has become due meanwhile, in that order."""
        if self.is_over:
            return
        self.is_running = True
        kept, self._kept = self._kept, []
        for handle in kept:
            handle.come_again()

    @property
    def is_paused(self) -> bool:
        return not self.is_running and not self.is_over

    def keep(self, handle: _Mortal) -> None:
        """Remember what has become due while this part is paused."""
        self._kept.append(handle)


_life: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


class Deadlock(RuntimeError):
    """Nothing is due any more, but the awaited result has not come."""


class _Mortal:
    """A handle that does nothing once its life is over."""

    _context: contextvars.Context
    _callback: Callable[..., object]
    _loop: VirtualLoop

    def _run(self) -> None:
        life = self._context.get(_life)
        if life is None or life.is_running:
            super()._run()  # type: ignore[misc]  # of the handle that this is mixed into
        elif life.is_over:
            self.forget()
        else:
            life.keep(self)

    def come_again(self) -> None:
        """Be due now."""
        self._loop._ready.append(self)  # type: ignore[arg-type]  # it is mixed into a handle

    def forget(self) -> None:
        """Close the coroutine of a task that never begins; Python would warn that it was never awaited."""
        task = getattr(self._callback, "__self__", None)
        coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
        if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


class _MortalHandle(_Mortal, Handle):
    pass


class _MortalTimer(_Mortal, TimerHandle):
    pass


class VirtualLoop(asyncio.BaseEventLoop):
    """`now` are the seconds since the simulation began. `failures` are what asyncio was told of, each with
    the context in which that happened.

    Timers come one at a time, in the order of their time and then of their creation. All that follows at once
    from one of them is done before the next. So parts that know nothing of each other do the same at the same
    time, whoever is beside them.
    """

    # A part of asyncio's own loop that its published types leave out.
    _ready: deque[Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.failures: list[dict[str, Any]] = []
        self._timers: list[tuple[float, int, _MortalTimer]] = []
        self._timer_numbers = itertools.count()
        self._timers_max = TIMERS_MIN
        self.set_exception_handler(self._note)

    def _note(self, _loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
        # Tasks of lives that are over are never finished.
        is_end = "destroyed but it is pending" in failure["message"] or isinstance(
            failure.get("exception"), Crash
        )
        if not is_end:
            handle = failure.get("handle")
            context = handle._context if isinstance(handle, _Mortal) else contextvars.copy_context()
            self.failures.append(failure | {"context": context})

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
        if len(self._timers) >= self._timers_max:
            self._drop_cancelled_timers()
        heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def _drop_cancelled_timers(self) -> None:
        self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
        heapq.heapify(self._timers)
        self._timers_max = max(TIMERS_MIN, 2 * len(self._timers))

    def _run_once(self) -> None:
        """Call what is due now, or let the next timer come."""
        if not self._ready and not self._stopping:
            self._advance()
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _advance(self) -> None:
        while self._timers:
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self.now = max(self.now, when)
                self._ready.append(timer)
                return
        raise Deadlock(f"nothing is due after {self.now:.6f} s")

    def _check_closed(self) -> None:
        # Python finishes the remains of dead brokers when it collects them, perhaps after the end of their
        # world. They release locks on the way, which wakes others. If that failed, they would log it in the
        # midst of the next world, which listens to what a broker logs.
        pass

    def _write_to_self(self) -> None:
        pass
