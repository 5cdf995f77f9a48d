"""One journal: an append-only stream of entries in segment files.

`append` gives an entry its position and returns at once; `group_commit` writes and syncs it, and calls the
waiters back. `opening` reads a journal back at a start, and `reverse_list` reads one transaction's drafts
for a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from faircopy.errors import invariant
from faircopy.journal.entry import (
    HEADER_BYTES,
    MAX_LENGTH,
    NO_TRANSACTION,
    NOWHERE,
    Entry,
    Kind,
    TransactionId,
)
from faircopy.journal.entry_format import encode_header
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.group_commit import Callback, GroupCommit
from faircopy.journal.opening import Opening, ensure_reaches, misfit
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.recent import Draft
from faircopy.journal.segment import Segment
from faircopy.journal.segments import Segments
from faircopy.journal.watermarks import Watermarks
from faircopy.loop.waiting import tell
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.system import Buffer

Folded = TypeVar("Folded")


class Journal:
    """All methods belong to the event loop unless they say that they block.

    `segments` and `watermarks` say where entries are and how far they have come; only the journal changes
    them. `identity` names the journal in its files. `leader_epoch`, under which this broker leads, is in each
    appended entry. It is greater than those of all earlier leaders.
    """

    def __init__(
        self,
        directory: Path,
        identity: bytes,
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
        leader_epoch: int = 0,
    ):
        self.directory = directory
        self._identity = identity
        self._loop = loop
        self._options = options
        self.space = options.space
        self.draft_space = options.draft_space
        self.segments = Segments(directory)
        self.watermarks = Watermarks(is_synced_first=options.durability is Durability.FSYNC)
        self._commit = GroupCommit(self.segments, self.watermarks, identity, disk, loop, options)
        self.was_torn = False
        self.leader_epoch = leader_epoch

    # -- recent drafts ---------------------------------------------------------------------------------------

    def keep_draft(self, entry: Entry, payload: Buffer) -> None:
        """Keep a draft in memory for a while. `payload` must never change."""
        self._options.recent.keep(self, entry, payload)

    def take_drafts(self, transaction: TransactionId, head: int) -> list[Draft]:
        """The last drafts of a transaction, up to `head`, as far back as they are still in memory."""
        return self._options.recent.take(self, transaction, head)

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self, start: int) -> Opening:
        """Find the segments of a journal that may exist, to be read from `start` on, the checkpoint's
        position: everything before it is known to be durable. `accept` ends the opening. Blocks.

        Raises DamagedJournal, StorageFailure.
        """
        self.segments.open(self._identity)
        ensure_reaches(self.segments, start)
        if self._options.is_unclean:
            self.segments.renew(start)
        lost_power, passed_over = self._options.lost_power, self._options.passed_over
        return Opening(self.segments, start, lost_power=lost_power, passed_over=passed_over)

    def accept(self, opening: Opening) -> None:
        """Take what was read for the whole journal: cut what follows, and be ready to append. Blocks.

        Raises StorageFailure.
        """
        opening.cut()
        self.was_torn = opening.is_torn
        self.watermarks.start_at(opening.end)

    def misfit(self, position: int, error: Exception) -> DamagedJournal:
        """The error for a sound entry that makes no sense here."""
        return misfit(self.segments, position, error)

    def shrink(self) -> None:
        """Give back the space that is reserved for more entries, since there will be none. Blocks."""
        self.segments.shrink(self.watermarks.appended)

    # -- appending -------------------------------------------------------------------------------------------

    def ensure_space(self) -> None:
        """Raise JournalFull while the disk is full: for entries that take more space than they free."""
        self._commit.space_wait.ensure_space()

    def ensure_reserve(self) -> None:
        """Raise JournalFull while this journal waits: for entries that free space or decide transactions."""
        self._commit.space_wait.ensure_reserve()

    @property
    def waits_for_space(self) -> bool:
        """Whether appended entries can't be written before the disk has space."""
        return self._commit.space_wait.shortage is not None

    def append(
        self,
        kind: Kind,
        payload: Buffer = b"",
        *,
        fold: Callable[[Entry], Folded],
        records: int = 0,
        previous: int = NOWHERE,
        transaction: TransactionId = NO_TRANSACTION,
    ) -> Folded:
        """Fold an entry, append it, and return what `fold` made of it. `payload` must not change until it is
        written.

        What does not fold is a bug of ours, and is not appended: no later start could read past it. The state
        may be half changed by then, so `on_bug` ends the process before anything can come of it.
        """
        length = HEADER_BYTES + len(payload)
        marks, options = self.watermarks, self._options
        position = marks.appended
        entry = Entry(kind, position, length, records, self.leader_epoch, previous, transaction, marks.synced)
        try:
            invariant(length <= MAX_LENGTH, "an entry's length fits 32 bits")
            folded = fold(entry)
            segment = self.segments.for_append(position, length, options.segment_bytes, options.new_salt)
            header = encode_header(entry, payload, segment.seed)
        except Exception as error:
            options.on_bug(error)
            raise
        self._commit.add(segment, header, payload, length)
        return folded

    # -- waiting ---------------------------------------------------------------------------------------------

    def when_written(self, callback: Callback) -> None:
        """Call back when all entries appended so far are written to the file."""
        self._commit.when_written(callback)

    def when_durable(self, callback: Callback) -> None:
        """Call back, in order, when all entries appended so far are durable. This requests an fdatasync."""
        self._commit.when_durable(callback)

    def when_durable_without_sync(self, callback: Callback) -> None:
        """Like `when_durable`, but does not request an fdatasync: nobody waits for this entry."""
        self._commit.when_durable_without_sync(callback)

    async def durable(self) -> None:
        """Wait until all entries appended so far are durable."""
        await self._told_by(self.when_durable)

    async def written(self) -> None:
        """Wait until all entries appended so far are written to the file, so that they survive a kill."""
        await self._told_by(self.when_written)

    async def _told_by(self, when: Callable[[Callback], None]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        when(lambda: tell(future))
        await future

    async def sync(self) -> None:
        """Wait until all entries appended so far are fsynced, whatever the durability setting.

        Raises JournalFull instead of waiting for space.
        """
        await self._commit.sync()

    @property
    def is_at_work(self) -> bool:
        """Whether a thread is writing or syncing."""
        return self._commit.is_at_work

    # -- the start -------------------------------------------------------------------------------------------

    @property
    def start_position(self) -> int:
        """The position where the oldest segment begins."""
        return self.segments[0].base if self.segments else self.watermarks.appended

    def reclaim(self, below: int) -> list[Segment]:
        """Forget the segments wholly below position `below` (I7) and return them. See `Segments.reclaim`."""
        return self.segments.reclaim(below)

    def retire(self) -> None:
        """Another instance opens the files now: keep no drafts of this one, and no files open. Whoever still
        reads opens them again. Call it when everything is written and nothing is at work.
        """
        self._options.recent.forget_all(self)
        if self.watermarks.synced == self.watermarks.written:
            self.segments.close()

    def abandon(self) -> None:
        """The journal's files are about to be deleted: write nothing more, and ignore failures.

        All waiters are notified as if their entries were durable, since these are deleted with the rest.
        """
        self._commit.abandon()

    def reclaim_all(self) -> list[Segment]:
        """Forget all segments of an abandoned journal, and return them."""
        return self.segments.reclaim_all()
