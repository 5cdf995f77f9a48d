"""The checkpoints of a broker: one after another while it serves, many at a time when it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from faircopy.errors import FaircopyError
from faircopy.journal.errors import JournalFull
from faircopy.storage.clock import Clock
from faircopy.storage.space_watch import SpaceWatch

LAST_AT_ONCE = 64
"""When a broker stops, or no longer leads a shard, no commit waits for an fsync, and many checkpoints share
one fsync of the state store.
"""

FULL_DISK_PATIENCE_MS = 20_000
LOOK_SECONDS = 0.25
TELL_MS = 5_000
HELD_POLL_SECONDS = 0.01

log = logging.getLogger(__name__)
Item = TypeVar("Item")


class HasCheckpoints(Protocol):
    """A partition, a metadata journal, or the catalogue."""

    @property
    def bytes_since_checkpoint(self) -> int:
        """How many bytes of the journal a start would have to read."""

    async def checkpoint(self) -> None:
        """Store the present state (I6)."""


class DiskStaysFull(FaircopyError):
    """The last checkpoints wait for space on a full disk: the broker stops without them."""


class Checkpoints:
    """The checkpoints of everything that `candidates` returns."""

    def __init__(
        self, candidates: Callable[[], Sequence[HasCheckpoints]], space: SpaceWatch, clock: Clock
    ) -> None:
        self._candidates = candidates
        self._space = space
        self._clock = clock
        self._under_way = 0
        self._is_held = False

    async def make(self, least_bytes: int, at_once: int = 1) -> None:
        """Checkpoint every candidate with at least `least_bytes` to read since its last checkpoint.

        Raises JournalFull if some wait for space, once all others are done.
        """
        while self._is_held:
            await asyncio.sleep(HELD_POLL_SECONDS)
        self._under_way += 1
        try:
            due = [each for each in self._candidates() if each.bytes_since_checkpoint >= least_bytes]
            await checkpoint_some_at_a_time(due, at_once)
        finally:
            self._under_way -= 1

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold off all checkpoints."""
        self._is_held = True
        try:
            while self._under_way:
                await asyncio.sleep(HELD_POLL_SECONDS)
            yield
        finally:
            self._is_held = False

    async def make_last(self) -> None:
        """Checkpoint everything, however long it takes. Logs progress. Raises DiskStaysFull, JournalFull."""
        work = asyncio.ensure_future(self.make(1, LAST_AT_ONCE))
        try:
            await self._watch(work)
            work.result()
        except (Exception, asyncio.CancelledError):
            work.cancel()
            raise

    async def _watch(self, work: asyncio.Future[None]) -> None:
        due = self._count_due()
        told_ms = self._clock.monotonic_ms()
        full_since_ms: float | None = None
        while not (await asyncio.wait([work], timeout=LOOK_SECONDS))[0]:
            now_ms = self._clock.monotonic_ms()
            if now_ms - told_ms >= TELL_MS:
                log.info("stopping: %d of %d checkpoints are made", due - self._count_due(), due)
                told_ms = now_ms
            full_since_ms = (full_since_ms or now_ms) if self._space.is_full else None
            if full_since_ms is not None and now_ms - full_since_ms > FULL_DISK_PATIENCE_MS:
                raise DiskStaysFull("the disk is full")

    def _count_due(self) -> int:
        return sum(1 for each in self._candidates() if each.bytes_since_checkpoint)


async def checkpoint_some_at_a_time(due: Iterable[HasCheckpoints], at_once: int) -> None:
    """Checkpoint each. A full disk fails only those that need space; it is raised after all others."""
    full: list[JournalFull] = []

    async def checkpoint(each: HasCheckpoints) -> None:
        try:
            await each.checkpoint()
        except JournalFull as error:
            full.append(error)

    await run_some_at_a_time(due, at_once, checkpoint)
    if full:
        raise full[0]


async def run_some_at_a_time(
    items: Iterable[Item], at_once: int, work: Callable[[Item], Awaitable[None]]
) -> None:
    """Call `work` for each item, `at_once` items at a time. The first error cancels the rest."""
    waiting = deque(items)

    async def run() -> None:
        while waiting:
            await work(waiting.popleft())

    workers = [asyncio.ensure_future(run()) for _ in range(min(at_once, len(waiting)))]
    try:
        await asyncio.gather(*workers)
    except (Exception, asyncio.CancelledError):
        for worker in workers:
            worker.cancel()
        raise
