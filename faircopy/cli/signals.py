"""What signals do to a broker. SIGTERM, SIGINT and SIGHUP do the same; it only matters when they come.

    before it is ready    it ends at once, as in a crash: there is nothing yet to put in order
    while it serves       it stops in an orderly way
    while it stops        it ends at once, as in a crash: a user who asks twice does not want to wait

A terminal sends SIGHUP when it closes: a broker that was started in it stops in an orderly way, unless nohup
makes it ignore the signal. The kernel and the shell may both send SIGHUP, and timeout(1) sends its signal
twice: these don't count as asking twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterable, Iterator
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXIT_SIGNALLED = 128  # plus the signal's number, as in shells
SAME_SIGNAL_SECONDS = 0.2

log = logging.getLogger(__name__)


def heard() -> list[signal.Signals]:
    """The signals that the process does not ignore."""
    return [
        number
        for number in ENDING
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]


def end_at_once(when: str, numbers: Iterable[signal.Signals], after: float = 0.0) -> None:
    """After `after` seconds, let these signals end the process like a crash, even if the loop is busy."""

    def end(number: int, _frame: FrameType | None) -> None:
        if time.monotonic() < after:
            return
        line = f"faircopy: {signal.Signals(number).name} {when}: ended at once, and the next start recovers\n"
        with contextlib.suppress(OSError):
            os.write(2, line.encode())
        os._exit(EXIT_SIGNALLED + number)

    for number in numbers:
        signal.signal(number, end)


def end_before_ready() -> None:
    """Until the broker is ready, a signal ends it at once."""
    end_at_once("before it was ready", heard())


@contextlib.contextmanager
def first_signal(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Event]:
    """An event that the first signal sets. After the block, while the broker stops, a second one ends it."""
    came = asyncio.Event()
    numbers = heard()

    def take(number: signal.Signals) -> None:
        log.info("%s: stopping in order; a second signal ends the broker at once", number.name)
        came.set()

    for number in numbers:
        loop.add_signal_handler(number, take, number)
    try:
        yield came
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        asked_twice = time.monotonic() + SAME_SIGNAL_SECONDS
        end_at_once("while it was stopping", (signal.SIGTERM, signal.SIGINT), asked_twice)
