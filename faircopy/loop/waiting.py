"""Notifying a waiter on the event loop that may be gone: a stop cancels work in progress."""

from __future__ import annotations

import asyncio


def tell(waiting: asyncio.Future[None]) -> None:
    """Notify the waiter that its event has happened. Does nothing if the wait was cancelled or is over."""
    if not waiting.done():
        waiting.set_result(None)
