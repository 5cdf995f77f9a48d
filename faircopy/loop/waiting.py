"""Waiters on the event loop: one that may be gone, since a stop cancels work in progress, and one for several
works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


def tell(waiting: asyncio.Future[None]) -> None:
    """Notify the waiter that its event has happened. Does nothing if the wait was cancelled or is over."""
    if not waiting.done():
        waiting.set_result(None)


async def until_one_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Do these works side by side until one of them ends, cancel the others, and wait for them. Raises what
    ended the first.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await cancel(tasks)
        raise
    await cancel(tasks)
    next(task for task in tasks if task in ended).result()


async def cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel these tasks, and wait until they have ended, in whichever way."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
