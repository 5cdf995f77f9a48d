"""Waiting until nothing more happens by itself, without waiting for any time.

What has not happened when all threads and the loop are idle waits for something else. So a test may say that
it does not happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from faircopy.storage.disk_pool import DiskPool, Done


class CountedPool(DiskPool):
    """A pool that knows how many of its jobs are under way: not done, or not called back yet."""

    under_way = 0

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...], done: Done) -> None:
        self.under_way += 1

        def counted(result: Any, error: BaseException | None) -> None:
            self.under_way -= 1
            done(result, error)

        super().submit(function, arguments, counted)


async def idle(*pools: CountedPool) -> None:
    """Return when the pools have no job, and the running loop has nothing to call. Timers don't count."""
    while is_calling(asyncio.get_running_loop()) or any(pool.under_way for pool in pools):
        await asyncio.sleep(0)


def is_calling(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether callbacks are due beside the one that runs now."""
    due = loop._ready  # type: ignore[attr-defined]  # of asyncio's own loops
    return bool(due)
