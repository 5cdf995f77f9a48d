"""Periodic work of a broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from faircopy.errors import FaircopyError
from faircopy.storage.failures import WriteFailure

log = logging.getLogger(__name__)


async def repeat(
    interval_ms: int, work: Callable[[], Awaitable[None]], on_write_failure: Callable[[WriteFailure], None]
) -> None:
    """Do this every `interval_ms`, for ever. A failure is tried again, and logged only once."""
    told = ""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await work()
        except WriteFailure as error:
            on_write_failure(error)
        except FaircopyError as error:
            if str(error) != told:
                log.error("%s", error)
            told = str(error)
        except Exception:
            log.exception("work in the background failed; it will be tried again")
        else:
            if told:
                log.info("it is over: %s", told)
            told = ""
