"""How large requests share with all others: the event loop by turns, the threads one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from faircopy.loop.pace import Pace, Turns
from faircopy.net.exchange import ClientConnection
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool

Result = TypeVar("Result")


class LargeRequests:
    """Decodes and encodes large messages on threads, and paces the work on them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, disk: DiskPool, clock: Clock) -> None:
        self._turns = Turns(loop)
        self._disk = disk
        self._clock = clock
        self._room = asyncio.Semaphore(1)

    def pace_for(self, connection: ClientConnection) -> Pace:
        """The pace for one request of this connection."""
        return Pace(self._turns, self._clock, lambda: connection.is_open)

    async def run(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run `function(*arguments)`, which decodes or encodes one large message, on a thread."""
        async with self._room:
            return await self._disk.run(function, *arguments)
