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
from faircopy.journal.errors import DamagedJournal, Misplaced, NotEnoughReplicas
from faircopy.journal.group_commit import Callback, GroupCommit
from faircopy.journal.opening import Opening, ensure_reaches, misfit
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.pieces import Piece, read_piece
from faircopy.journal.recent import Draft
from faircopy.journal.segment import Segment
from faircopy.journal.segments import Segments
from faircopy.journal.watermarks import EVERYWHERE, Watermarks
from faircopy.loop.waiting import tell
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.epoch_history import NO_EPOCHS, Epochs
from faircopy.storage.system import Buffer

Folded = TypeVar("Folded")


class Journal:
    """All methods belong to the event loop unless they say that they block.

    `segments` and `watermarks` say where entries are and how far they have come; only the journal changes
    them. `identity` names the journal in its files. `leader_epoch`, under which this broker leads, is in each
    appended entry. It is greater than those of all earlier leaders. `epochs` has the leader epochs of all
    entries, each with the position of its first one.
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
        self.identity = identity
        self._loop = loop
        self._options = options
        self.space = options.space
        self.draft_space = options.draft_space
        self.segments = Segments(directory)
        self.watermarks = Watermarks(
            is_synced_first=options.durability is Durability.FSYNC,
            replicated=0 if options.is_replicated else EVERYWHERE,
        )
        self._commit = GroupCommit(self.segments, self.watermarks, identity, disk, loop, options)
        self.was_torn = False
        self.leader_epoch = leader_epoch
        self.epochs = NO_EPOCHS
        self._is_open = False

    # -- recent drafts ---------------------------------------------------------------------------------------

    def keep_draft(self, entry: Entry, payload: Buffer) -> None:
        """Keep a draft in memory for a while. `payload` must never change."""
        self._options.recent.keep(self, entry, payload)

    def take_drafts(self, transaction: TransactionId, head: int) -> list[Draft]:
        """The last drafts of a transaction, up to `head`, as far back as they are still in memory."""
        return self._options.recent.take(self, transaction, head)

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self, start: int, epochs: Epochs = NO_EPOCHS) -> Opening:
        """Find the segments of a journal that may exist, to be read from `start` on, the checkpoint's
        position, up to which the entries have these leader epochs: everything before it is known to be
        durable. `accept` ends the opening. Blocks.

        If the journal is open raw, what it has by now is read again, so that it can be folded. It must all be
        written. Raises DamagedJournal, StorageFailure.
        """
        known_durable = start
        if self._is_open:
            known_durable = self.watermarks.appended
        else:
            self.segments.open(self.identity)
            ensure_reaches(self.segments, start)
            if self._options.is_unclean:
                self.segments.renew(start)
        lost_power, passed_over = self._options.lost_power, self._options.passed_over
        return Opening(
            self.segments, start, epochs, known_durable, lost_power=lost_power, passed_over=passed_over
        )

    def open_raw(self, start: int, epochs: Epochs = NO_EPOCHS) -> None:
        """Find the end of a journal, and fold nothing: be ready for copies of another replica's entries.
        `open` reads them again to fold them. Blocks.

        Raises DamagedJournal, StorageFailure.
        """
        opening = self.open(start, epochs)
        for _ in opening.entries():
            pass
        opening.judge_end()
        self.accept(opening)

    def ensure_leads(self, opening: Opening) -> None:
        """Ensure that the epoch that is about to lead was never used before, not even by this broker (I8).
        Epoch 0 has no leader.

        Raises DamagedJournal.
        """
        newest = opening.epochs.newest
        if 0 < newest >= self.leader_epoch:
            raise DamagedJournal(
                f"{self.directory} has entries of leader epoch {newest}, but the next epoch is "
                f"{self.leader_epoch}: the state store is older than the journal; restore both from one "
                f"backup"
            )

    def accept(self, opening: Opening) -> None:
        """Take what was read for the whole journal: cut what follows, and be ready to append. Blocks.

        Raises StorageFailure.
        """
        if self._is_open:
            return
        opening.cut()
        self.was_torn = opening.is_torn
        self.watermarks.start_at(opening.end)
        self.epochs = opening.epochs.trim(self.start_position)
        self._is_open = True

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

    def ensure_replicas(self) -> None:
        """Raise NotEnoughReplicas while other replicas are missing: for entries that nobody waits for yet."""
        self._commit.space_wait.ensure_replicas()

    @property
    def waits_for_space(self) -> bool:
        """Whether appended entries can't be written before the disk has space."""
        return self._commit.space_wait.shortage is not None

    @property
    def is_stuck(self) -> bool:
        """Whether appended entries can't become durable before the disk has space, or others are back."""
        return self.waits_for_space or isinstance(self.space.elsewhere, NotEnoughReplicas)

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
            if self.leader_epoch != self.epochs.newest:
                self.epochs = self.epochs.note(self.leader_epoch, position)
        except Exception as error:
            options.on_bug(error)
            raise
        self._commit.add(segment, header, payload, length)
        return folded

    def append_copy(self, entry: Entry, payload: Buffer, payload_crc: int) -> None:
        """Append an entry that another replica wrote, of whichever epoch, at the same position and with the
        same payload. Its header is this replica's own: it has its salt, and how far it has synced.

        The payload must match `payload_crc`, and must not change until it is written. Nothing is folded.
        Raises Misplaced unless the entry follows those that are here.
        """
        marks = self.watermarks
        if entry.position != marks.appended or entry.leader_epoch < self.epochs.newest:
            raise Misplaced(
                f"{self.directory} ends at position {marks.appended} in leader epoch {self.epochs.newest}: "
                f"an entry of epoch {entry.leader_epoch} for position {entry.position} does not follow"
            )
        invariant(entry.payload_bytes == len(payload), "an entry has the payload that its length says")
        options = self._options
        segment = self.segments.for_append(
            entry.position, entry.length, options.segment_bytes, options.new_salt
        )
        own = entry._replace(durable=marks.synced)
        header = encode_header(own, payload, segment.seed, payload_crc)
        self.epochs = self.epochs.note(entry.leader_epoch, entry.position)
        self._commit.add(segment, header, payload, entry.length)

    # -- waiting ---------------------------------------------------------------------------------------------

    def when_kept(self, callback: Callback) -> None:
        """Call back when all entries appended so far are kept: they survive a kill, and in a set the loss of
        this machine as well.
        """
        self._commit.when_kept(callback)

    def when_durable(self, callback: Callback) -> None:
        """Call back, in order, when all entries appended so far are durable. This requests an fdatasync."""
        self._commit.when_durable(callback)

    def when_durable_without_sync(self, callback: Callback) -> None:
        """Like `when_durable`, but does not request an fdatasync: nobody waits for this entry."""
        self._commit.when_durable_without_sync(callback)

    def request_sync(self) -> None:
        """Request an fdatasync of all entries appended so far; nobody is called back."""
        self._commit.request_sync()

    async def durable(self) -> None:
        """Wait until all entries appended so far are durable."""
        await self._told_by(self.when_durable)

    async def kept(self) -> None:
        """Wait until all entries appended so far are kept: see `when_kept`."""
        await self._told_by(self.when_kept)

    async def _told_by(self, when: Callable[[Callback], None]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        when(lambda: tell(future))
        await future

    async def sync(self) -> None:
        """Wait until all entries appended so far are fsynced, whatever the durability setting.

        Raises JournalFull instead of waiting for space.
        """
        await self._commit.sync()

    def note_replicated(self, durable_up_to: int, drafts_up_to: int) -> None:
        """All other replicas that have to have an entry before it is durable have those up to
        `durable_up_to`; those that have to have an acked draft, up to `drafts_up_to`. See
        `Watermarks.note_replicated`.
        """
        self._commit.note_replicated(durable_up_to, drafts_up_to)

    def piece(self, position: int, bytes_max: int, *, is_cached: bool) -> Piece:
        """At most `bytes_max` bytes of the journal's files from `position` on, of one segment, and of what is
        synced, for a follower. The position must be below what is synced.

        With `is_cached`, they are read only from the page cache. Otherwise this blocks, and may run on a
        thread. Raises DamagedJournal, StorageFailure; NotCached when reading from the cache.
        """
        return read_piece(self.segments, position, self.watermarks.synced, bytes_max, is_cached=is_cached)

    @property
    def is_at_work(self) -> bool:
        """Whether a thread is writing or syncing."""
        return self._commit.is_at_work

    # -- the start -------------------------------------------------------------------------------------------

    @property
    def start_position(self) -> int:
        """The position where the oldest segment begins."""
        return self.segments[0].base if self.segments else self.watermarks.appended

    def epochs_below(self, position: int) -> Epochs:
        """The leader epochs of the entries up to `position`, for a checkpoint there."""
        return self.epochs.cut(position)

    def reclaim(self, below: int) -> list[Segment]:
        """Forget the segments wholly below position `below` (I7) and return them. See `Segments.reclaim`."""
        reclaimed = self.segments.reclaim(below)
        self.epochs = self.epochs.trim(self.start_position)
        return reclaimed

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
