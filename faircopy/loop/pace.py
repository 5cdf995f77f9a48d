"""Sharing the event loop between large requests: each works for a moment, then lets the others continue."""

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
    """The client no longer waits for the answer."""


class Turns:
    """Gives turns: in each tick of the loop one long request continues, the one that has waited longest.

    A connection has one request at a time in progress, so all connections share the loop, however large their
    requests are.
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

    Only work counts, not the time before a list is iterated, such as a wait for the disk. Otherwise each
    request that had waited would wait again, for a turn of its own, and commits would reach the disk one by
    one.
    """

    def __init__(self, turns: Turns, clock: Clock, is_wanted: Callable[[], bool]) -> None:
        self._turns = turns
        self._clock = clock
        self._is_wanted = is_wanted
        self._until_ms = 0.0
        self._lists = 0

    async def over(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """The items, with a pause between two of them when due. Raises ClientGone if the client has gone."""
        async for item in self.through(items):
            self.ensure_wanted()
            yield item

    async def through(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """The same for changes, which are completed whether or not their client waits."""
        if not self._lists:  # otherwise it is a list within a list
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
        """The result of `work` for each item, iterated like `through`; for small requests this costs less."""
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
        """Raise ClientGone if the client has gone."""
        if not self._is_wanted():
            raise ClientGone("the client did not wait for the answer")


class NoPace(Pace):
    """The pace of work that no client has requested: without pauses."""

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
