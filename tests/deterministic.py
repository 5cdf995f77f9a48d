"""`pytest -p tests.deterministic`: a test that starts a process, or sleeps on a real clock, fails.

`make check` runs with it. What a test of it says then follows from the code alone, however slow the machine
is. Tests that need processes or real time belong to the jobs of `make test`.

An item is watched from its setup to its teardown, in all threads. Whatever it does that is forbidden raises
`NotDeterministic` at once. The item also fails if something swallows that.
"""

from __future__ import annotations

import _posixsubprocess
import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

import pytest

PROCESS_EVENTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
FORKS_ALLOWED_FROM = "tests.forked"  # a mutant changes this process, so each gets a copy of it

ADVICE = "this belongs to a job of `make test` (see tests/deterministic.py)"


class NotDeterministic(AssertionError):
    """What the test did depends on more than the code."""


class Guard:
    """Watches one item at a time. `done` is what the item did that is forbidden."""

    def __init__(self) -> None:
        self.is_watching = False
        self.done: list[str] = []

    def refuse(self, what: str) -> None:
        """Raise NotDeterministic, and remember it for the item's end."""
        self.done.append(what)
        raise NotDeterministic(f"a test of `make check` {what}: {ADVICE}")

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what an audit event tells of (`sys.addaudithook`)."""
        if not self.is_watching:
            return
        if event in PROCESS_EVENTS and not (event == "os.fork" and is_of_a_trial(sys._getframe())):
            self.refuse(f"starts a process ({event} {' '.join(map(repr, arguments[:2]))})")

    def check(self) -> None:
        """Fail if anything was refused since the last call."""
        done, self.done = self.done, []
        if done:
            raise NotDeterministic(f"a test of `make check` {'; it '.join(done)}: {ADVICE}")


def is_of_a_trial(frame: FrameType | None) -> bool:
    """Whether the module that may fork is among the callers."""
    while frame is not None:
        if frame.f_globals.get("__name__") == FORKS_ALLOWED_FROM:
            return True
        frame = frame.f_back
    return False


GUARD = Guard()
real_sleep = time.sleep
real_asyncio_sleep = asyncio.sleep
real_fork_exec: Callable[..., int] = _posixsubprocess.fork_exec


def guarded_sleep(seconds: float) -> None:
    """`time.sleep`, refused unless it only gives way to other threads."""
    if GUARD.is_watching and seconds > 0:
        GUARD.refuse(f"sleeps for {seconds} s")
    real_sleep(seconds)


async def guarded_asyncio_sleep(delay: float, result: Any = None) -> Any:
    """`asyncio.sleep`, refused on a loop that follows the machine's clock."""
    if GUARD.is_watching and delay > 0 and has_real_time(asyncio.get_running_loop()):
        GUARD.refuse(f"sleeps for {delay} s on a real event loop")
    return await real_asyncio_sleep(delay, result)


def has_real_time(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether nobody has given the loop a clock of its own."""
    return type(loop).__module__.partition(".")[0] in ("asyncio", "uvloop")


def guarded_fork_exec(*arguments: Any) -> int:
    """What `multiprocessing` starts processes with, of which no audit event tells."""
    if GUARD.is_watching:
        GUARD.refuse(f"starts a process ({arguments[0]!r})")
    return real_fork_exec(*arguments)


@contextlib.contextmanager
def guarding() -> Iterator[None]:
    """Guard this process meanwhile. The audit hook can't be removed; it hears nothing afterwards."""
    guards = [GUARD]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        for guard in guards:
            guard.hear(event, arguments)

    sys.addaudithook(hook)
    with (
        mock.patch.object(time, "sleep", guarded_sleep),
        mock.patch.object(asyncio, "sleep", guarded_asyncio_sleep),
        mock.patch.object(_posixsubprocess, "fork_exec", guarded_fork_exec),
    ):
        yield
    guards.clear()


def pytest_configure(config: pytest.Config) -> None:
    until_the_end = contextlib.ExitStack()
    until_the_end.enter_context(guarding())
    config.add_cleanup(until_the_end.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before, GUARD.is_watching = GUARD.is_watching, True
    try:
        return (yield)
    finally:
        GUARD.is_watching = before


@pytest.hookimpl(wrapper=True)
def watched_phase(item: pytest.Item) -> Iterator[None]:
    """Fail the phase in which something was refused, even if its test did not notice."""
    try:
        return (yield)
    finally:
        GUARD.check()


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = watched_phase
