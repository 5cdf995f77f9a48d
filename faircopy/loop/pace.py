"""Sharing the event loop between requests that ask for much: each works for a moment, then lets the others go on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from faircopy.errors import FaircopyError
from faircopy.storage.clock import Clock

TURN_MS = 1.0

Item = TypeVar("Item")
Made = TypeVar("Made")


class ClientGone(FaircopyError):
    """Nobody waits for the answer any more."""


class Turns:
    """Gives turns: in one tick of the loop one long request goes on, the one that has waited longest.

    A connection has one request at a time in the works, so connections share the loop, however much each asks for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    async def next(self) -> None:
        """Wait for a turn."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        self._schedule()
        await turn

    def _schedule(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._give)

    def _give(self) -> None:
        self._is_due = False
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        self._schedule()


class Pace:
    """The pace of one request: after each millisecond of work it waits for its next turn.

    Only work counts: what passed before a list is gone over, such as the wait for the disk, does not. With it, each
    request that had waited would wait again, for a turn of its own, and commits would come one by one to the disk.
    """

    def __init__(self, turns: Turns, clock: Clock, is_wanted: Callable[[], bool]) -> None:
        self._turns = turns
        self._clock = clock
        self._is_wanted = is_wanted
        self._until_ms = 0.0
        self._lists = 0

    async def over(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """The items, with a rest between two of them where it is time. Raises ClientGone if the client did not wait."""
        async for item in self.through(items):
            self.ensure_wanted()
            yield item

    async def through(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """The same for changes, which are made to the end, whether or not their client waits."""
        if not self._lists:  # else it is a list within a list
            self._begin()
        self._lists += 1
        try:
            for item in items:
                if self._clock.monotonic_ms() >= self._until_ms:
                    await self._turns.next()
                    self._begin()
                yield item
        finally:
            self._lists -= 1

    async def each(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """What `work` makes of each item, as `through` goes over them; for small requests this costs less."""
        if not self._lists:
            self._begin()
        made = []
        for item in items:
            if self._clock.monotonic_ms() >= self._until_ms:
                await self._turns.next()
                self._begin()
            made.append(work(item))
        return made

    def _begin(self) -> None:
        self._until_ms = self._clock.monotonic_ms() + TURN_MS

    def ensure_wanted(self) -> None:
        """Raise ClientGone if the client did not wait."""
        if not self._is_wanted():
            raise ClientGone("the client did not wait for the answer")


class NoPace(Pace):
    """For what is not asked by a client of a broker: no rest."""

    def __init__(self) -> None:
        pass

    async def through(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        for item in items:
            yield item

    async def each(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        return list(map(work, items))

    def ensure_wanted(self) -> None:
        pass


NO_PACE = NoPace()
