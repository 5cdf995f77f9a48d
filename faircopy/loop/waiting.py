"""Telling one who waits on the event loop, and may be gone: a stop cancels what is in the works."""

from __future__ import annotations

import asyncio


def tell(waiting: asyncio.Future[None]) -> None:
    """What was waited for has come. Without one who waits any more, this does nothing."""
    if not waiting.done():
        waiting.set_result(None)
