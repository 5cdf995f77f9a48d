"""The event loop that a broker runs on: uvloop's where it is installed, otherwise asyncio's own, which is
slower and does the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

log = logging.getLogger(__name__)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run this on a new event loop; return its result."""
    try:
        import uvloop
    except ImportError:
        log.info("uvloop is not installed: this runs on asyncio's own event loop, which is slower")
        return asyncio.run(main)
    result: Result = uvloop.run(main)
    return result
