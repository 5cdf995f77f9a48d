"""The local copy: it carries the effects of a data journal into the visible log, in order (I1).

Small copies run on the event loop, large ones on the disk threads while the loop goes on. Either way, a
partition has only one copy under way at a time, since offsets become visible in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, cast

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.copy import (
    PIECE_BYTES,
    ReadDrafts,
    Step,
    Steps,
    WriteBatches,
    copy_batch,
    copy_transaction,
    following,
    write_placed,
)
from faircopy.copier.copy_at_once import copy_at_once
from faircopy.copier.fold import CopyBatch, CopyTransaction, Effect, MoveStart
from faircopy.copier.spans import Spans
from faircopy.datalog.leftovers import Leftovers
from faircopy.datalog.log import DataLog, LogEnd, PlacedBatch
from faircopy.datalog.segment import LogSegment
from faircopy.errors import FaircopyError
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.journal.recent import Draft
from faircopy.journal.reverse_list import read_from_cache, read_from_disk
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace, Shortage
from faircopy.storage.file import NotCached
from faircopy.storage.paths import sync_directory
from faircopy.storage.state_store import Change, StateStore
from faircopy.storage.system import Buffer
from faircopy.wire.batch import placed_prefix, read_header

log = logging.getLogger(__name__)

INLINE_COPY_BYTES = 64 << 10
INLINE_COPY_DRAFTS = 64
NO_SPACE_RETRY_SECONDS = 1.0

Result = TypeVar("Result")
Job = tuple[CopyBatch | CopyTransaction, Buffer | None] | Callable[[], None]


class LogCopier:
    """The sink of one partition's journal: it writes the partition's visible log."""

    def __init__(
        self,
        journal: Journal,
        log: DataLog,
        store: StateStore,
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        on_damage: Callable[[FaircopyError], None],
    ) -> None:
        self._journal = journal
        self.log = log
        self._store = store
        self._disk = disk
        self._loop = loop
        self._on_damage = on_damage
        self._jobs: deque[Job] = deque()
        self._is_busy = False
        self._is_due = False
        self._is_abandoned = False
        self.waits_for_space = False
        self.pushed_offset = 0
        """The high watermark once everything pushed so far is carried out; 0 before the first push."""
        self._slow: asyncio.Task[None] | None = None
        self.spans = Spans(log.identity, store)
        self._snapshot_offset = 0
        self._snapshot_base = 0
        self._deletions = 0  # under way
        self._checkpointed = 0  # the log's `first_base` at the last known checkpoint

    # -- the queue -------------------------------------------------------------------------------------------

    def push(self, effect: Effect, payload: Buffer | None) -> None:
        if self._is_abandoned:
            return
        if isinstance(effect, MoveStart):
            # The new start is visible already: it need not wait for copies, which may wait for space.
            self._move_start(effect)
            return
        self._jobs.append((effect, payload))
        self.pushed_offset = end_of(effect)
        self._schedule()

    def push_barrier(self, reached: Callable[[], None]) -> None:
        if self._is_abandoned:
            return
        self._jobs.append(reached)
        self._schedule()

    def abandon(self) -> None:
        """The log is to be deleted: carry out nothing more, and ignore failures."""
        self._is_abandoned = True
        self._jobs.clear()

    @property
    def is_at_work(self) -> bool:
        """Whether a copy on a disk thread is under way, or the deletion of old segments."""
        return (self._slow is not None and not self._slow.done()) or self._deletions > 0

    def _schedule(self) -> None:
        if not self._is_due and not self._is_busy:
            self._is_due = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        """Carry out jobs until one needs a thread, or none is left."""
        self._is_due = False
        try:
            self._carry_out()
        except FaircopyError as error:
            self._is_busy = True  # for good: nothing may become visible after a gap
            self._on_damage(error)

    def _carry_out(self) -> None:
        while self._jobs and not self._is_busy:
            job = self._jobs[0]
            if not isinstance(job, tuple):
                self._jobs.popleft()
                job()
            elif isinstance(job[0], CopyBatch):
                self._copy_batches()
            else:
                self._jobs.popleft()
                self._copy_transaction(job[0])

    # -- live ------------------------------------------------------------------------------------------------

    def _copy_batches(self) -> None:
        """Copy the plain batches at the head of the queue with one write."""
        placed: list[PlacedBatch] = []
        size = 0
        while self._jobs and size < PIECE_BYTES:
            job = self._jobs[0]
            if not (isinstance(job, tuple) and isinstance(job[0], CopyBatch)):
                break
            self._jobs.popleft()
            assert job[1] is not None
            placed.append(self._place(memoryview(job[1]), job[0].base_offset, job[0].entry.leader_epoch))
            size += placed[-1].size
        if size > INLINE_COPY_BYTES or not self._write_inline(placed):
            self._go_slow(self._write_slowly(placed))

    def _copy_transaction(self, effect: CopyTransaction) -> None:
        self.spans.note(effect)
        recent = self._journal.take_drafts(effect.transaction, effect.head)
        if effect.size <= INLINE_COPY_BYTES and effect.drafts <= INLINE_COPY_DRAFTS:
            try:
                self._copy_small(effect, recent)
                return
            except (NotCached, Shortage):
                pass  # from reading: nothing is placed yet
        steps = copy_transaction(self._journal, effect, recent, read_from_disk, self._place)
        self._go_slow(self._carry_out_slowly(steps, next(steps)))

    def _copy_small(self, effect: CopyTransaction, recent: list[Draft]) -> None:
        """A small copy is one write, after one read if need be. Raises NotCached, Shortage."""
        steps = copy_transaction(self._journal, effect, recent, read_from_cache, self._place)
        step = next(steps)
        if isinstance(step, ReadDrafts):
            step = steps.send(step.work())
        if not self._write_inline(cast(WriteBatches, step).placed):
            self._go_slow(self._carry_out_slowly(steps, step))

    async def _carry_out_slowly(self, steps: Steps, step: Step | None) -> None:
        """Run this step and the following ones on disk threads. Wait whenever the disk is full."""
        drafts: list[Draft] | None = None
        while step is not None and not self._is_abandoned:
            if isinstance(step, ReadDrafts):
                drafts = await self._patiently(step.work)
            else:
                await self._write_slowly(step.placed)
            step = following(steps, drafts)

    async def _patiently(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run `work` on a disk thread. Retry after each Shortage, until there is space or a descriptor."""
        space = self._journal.space
        try:
            while True:
                try:
                    return await self._disk.run(work, *arguments)
                except Shortage as error:
                    space.note_waiting(self, error)
                    await asyncio.sleep(NO_SPACE_RETRY_SECONDS)
        finally:
            space.resumed(self)

    # -- writing ---------------------------------------------------------------------------------------------

    def _place(self, batch: memoryview, base_offset: int, leader_epoch: int) -> PlacedBatch:
        header = read_header(batch)
        prefix = placed_prefix(base_offset, header.length, leader_epoch)
        buffers = (prefix, batch[len(prefix) :])
        return self.log.place(base_offset, header.records, len(batch), header.max_timestamp_ms, buffers)

    def _write_inline(self, placed: list[PlacedBatch]) -> bool:
        """Write batches and make them visible. False if the disk is full: the slow path must wait."""
        try:
            write_placed(placed)
        except Shortage:
            return False
        self.log.show(placed)
        return True

    async def _write_slowly(self, placed: list[PlacedBatch]) -> None:
        space = self._journal.space
        try:
            while not self._is_abandoned and (lacking := await self._lacking_for(placed)) is not None:
                if not space.note_waiting(self, lacking):
                    self.waits_for_space = True
                    await asyncio.sleep(NO_SPACE_RETRY_SECONDS)
        finally:
            self.waits_for_space = False
            space.resumed(self)

    async def _lacking_for(self, placed: list[PlacedBatch]) -> Shortage | None:
        """Write batches on a disk thread, and make them visible. Returns the shortage if the disk is full."""
        size = sum(batch.size for batch in placed)
        if not self._journal.space.has_room_for(size):
            return NoSpace(f"copying {size} bytes into {self.log.directory}: no space is left; free some")
        try:
            await self._disk.run(write_placed, placed)
        except Shortage as error:
            return error
        self.log.show(placed)
        return None

    def _go_slow(self, work: Coroutine[Any, Any, None]) -> None:
        self._is_busy = True
        self._slow = self._loop.create_task(self._finish(work))

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (FaircopyError, OSError) as error:
            if not self._is_abandoned:
                self._on_damage(error if isinstance(error, FaircopyError) else FaircopyError(str(error)))
            return
        self._is_busy = False
        self._run()

    # -- trimming --------------------------------------------------------------------------------------------

    def _move_start(self, effect: MoveStart) -> None:
        self.log.trim(effect.start_offset)
        self._give_back()

    def _give_back(self) -> None:
        """Delete the segments below the log's start that the last checkpoint does not need."""
        gone, changes = self.log.take_gone(self._checkpointed)
        if gone:
            self._deletions += 1
            changes = [*changes, self.spans.trim(self._checkpointed)]
            self._loop.create_task(self._delete(gone, changes))

    async def _delete(self, gone: list[LogSegment], changes: list[Change]) -> None:
        try:
            for segment in gone:
                await self._disk.run(segment.discard)
            await self._store.write(changes)
        except FaircopyError as error:
            # Nobody reads them any more, and the next start looks for them again.
            log.error("deleting old segments of %s: %s", self.log.directory, error)
        finally:
            self._deletions -= 1

    # -- recovery and checkpoints ----------------------------------------------------------------------------

    def open(self, checkpoint: Checkpoint) -> None:
        """Open the log as far as it was copied up to this checkpoint. Blocks. Raises DamagedLog."""
        base = checkpoint.log_segment_base
        end = LogEnd(base, checkpoint.log_byte) if base is not None else None
        self.log.open(end, checkpoint.start_offset, checkpoint.next_offset, checkpoint.epochs)
        self._checkpointed = self.log.first_base

    def recover(self, effect: Effect, recovered: Recovered) -> None:
        """Carry out an effect at once, before the partition serves. Blocks. Raises StorageFailure."""
        match effect:
            case MoveStart() if self._jobs:
                self._jobs.append(lambda: self._move_start(effect))
            case MoveStart():
                self.log.trim(effect.start_offset)
            case _ if self._jobs:
                self._jobs.append((effect, bytes(recovered.payload)))
                self.pushed_offset = end_of(effect)
            case _:
                self._copy_at_once(effect, recovered.payload)

    def _copy_at_once(self, effect: CopyBatch | CopyTransaction, payload: memoryview) -> None:
        rest = copy_at_once(self._steps_of(effect, payload), self.log, self._journal.space)
        if rest is not None:
            # The disk is full: leave the rest until the broker runs, so that it can start and free space.
            self.waits_for_space = True
            self._jobs.append(lambda: self._go_slow(self._carry_out_slowly(*rest)))
            self.pushed_offset = end_of(effect)

    def _steps_of(self, effect: CopyBatch | CopyTransaction, payload: memoryview) -> Steps:
        if isinstance(effect, CopyBatch):
            return copy_batch(payload, effect.base_offset, effect.entry.leader_epoch, self._place)
        self.spans.note(effect)
        return copy_transaction(self._journal, effect, [], read_from_disk, self._place)

    def drop_rest(self, newest_epoch: int) -> None:
        """The journal has no more effects, and ends under this leader epoch: drop what the log's files hold
        after them. Blocks. Raises DamagedJournal if the journal must have had more.
        """
        # The journal has neither the batch after the log's end nor its epoch. But epochs don't fall.
        leader_epochs = range(newest_epoch, self._journal.leader_epoch + 1)
        if self._jobs:
            # Before the next checkpoint: it would count files of an earlier division as parts of the log.
            drop = partial(self._drop_leftovers, leader_epochs)
            self._jobs.append(lambda: self._go_slow(self._patiently(drop, self.log.leftovers())))
            self._jobs.append(self._give_back)
            self._loop.call_soon_threadsafe(self._schedule)
        else:
            self._drop_leftovers(leader_epochs, self.log.leftovers())
            if self.log.has_gone:
                self._loop.call_soon_threadsafe(self._give_back)

    def _drop_leftovers(self, leader_epochs: range, leftovers: Leftovers) -> None:
        """The whole journal is written: drop what else the files hold. Blocks. Raises DamagedJournal."""
        place = leftovers.find_forgotten(leader_epochs) if self._journal.watermarks.is_synced_first else None
        if place is not None:
            raise DamagedJournal(
                f"{self._journal.directory} is damaged at its end: {self.log.directory} holds offset "
                f"{place.offset}, which was visible, but the journal no longer does. Restore both from a "
                f"backup or a replica; or, if power was lost under durability=os, start once with that "
                f"setting"
            )
        leftovers.drop()

    def snapshot(self) -> tuple[list[Change], Checkpoint]:
        self._snapshot_offset = self.log.end_offset
        end = self.log.end or LogEnd(self.log.end_offset, 0)
        self._snapshot_base = self.log.first_base
        self.log.stamp()
        changes = self.spans.checkpoint()
        changes += self.log.index.checkpoint(self._snapshot_offset)
        changes += self.log.times.checkpoint()
        base = end.segment_base if self.log.end else None
        return changes, Checkpoint(0, 0, 0, base, end.byte)

    async def sync(self) -> None:
        unsynced = self.log.take_unsynced()
        try:
            await self._disk.run(self._sync_blocking, unsynced)
        except BaseException:
            self.log.give_back_unsynced(unsynced)
            raise

    def _sync_blocking(self, segments: list[LogSegment]) -> None:
        for segment in segments:
            segment.sync()
        sync_directory(self.log.directory)

    def stored(self) -> None:
        self.spans.stored()
        self.log.index.forget(self._snapshot_offset)
        self.log.times.stored()
        self._checkpointed = self._snapshot_base
        self._give_back()

    def retire(self) -> None:
        self.log.close()


def end_of(effect: CopyBatch | CopyTransaction) -> int:
    """The offset after the last one that an effect puts into the log."""
    return effect.base_offset + (effect.entry.records if isinstance(effect, CopyBatch) else effect.records)
