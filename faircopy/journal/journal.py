"""One journal: append on the event loop, write and fsync in groups, read back.

`append` gives an entry its position at once and returns. What is appended while a write is under way goes with the
next one, so all waiters of a file share an fdatasync, and those of several files run in parallel on the disk threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from faircopy.errors import FaircopyError, invariant
from faircopy.journal.entry import (
    HEADER_BYTES,
    MAX_LENGTH,
    NO_TRANSACTION,
    NOWHERE,
    Entry,
    Kind,
    TransactionId,
    encode_header,
)
from faircopy.journal.recent import Draft, RecentDrafts
from faircopy.journal.recovery import Recovered, ensure_torn, is_blank_from, read_entries
from faircopy.journal.segment import HEADER_BYTES as SEGMENT_HEADER_BYTES
from faircopy.journal.segment import SUFFIX, DamagedJournal, Segment
from faircopy.loop.waiting import tell
from faircopy.storage.disk import Disk
from faircopy.storage.failures import NoSpace, Shortage
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, list_directory, make_directory, sync_directory, with_suffix
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.system import Buffer

INLINE_WRITE_BYTES = 64 << 10
UNSYNCED_LIMIT_BYTES = 8 << 20
NO_SPACE_RETRY_SECONDS = 1.0

Callback = Callable[[], None]


class Durability(Enum):
    """What makes an entry durable: an fdatasync, or standing in the page cache as Kafka's default has it."""

    FSYNC = "fsync"
    OS = "os"


NOTHING_RECENT = RecentDrafts(0)


class JournalFull(FaircopyError):
    """The disk is full: nothing more is taken until there is space; what was taken before waits."""


class JournalOptions(NamedTuple):
    """What all journals of a broker share. `new_salt` gives a random u64; `on_failure` must end the process (I10).

    `is_disk_in_doubt`: an fsync has failed since the machine started, so what reads well may not be on disk.
    `lost_power`: since the last run, the machine may have; else all that was written is there.
    """

    durability: Durability
    segment_bytes: int
    new_salt: Callable[[], int]
    on_failure: Callable[[BaseException], None]
    recent: RecentDrafts = NOTHING_RECENT
    is_disk_in_doubt: bool = False
    space: SpaceWatch = SpaceWatch()
    lost_power: bool = True


class PendingWrite(NamedTuple):
    segment: Segment
    position: int
    size: int
    buffers: list[Buffer]


class Journal:
    """An append-only stream of entries. All methods belong to the event loop unless they say that they block.

    `space` is told of a full disk. `is_synced_first`: nothing is shown before it is fsynced.
    """

    def __init__(
        self,
        directory: Path,
        identity: bytes,
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
    ):
        self.directory = directory
        self._identity = identity
        self._disk = disk
        self._loop = loop
        self._options = options
        self.space = options.space
        self.is_synced_first = options.durability is Durability.FSYNC
        self._segments: list[Segment] = []
        self.next_position = 0
        self.written_position = 0
        self.synced_position = 0
        self._pending: list[PendingWrite] = []
        self._when_written: deque[tuple[int, Callback]] = deque()
        self._when_durable: deque[tuple[int, Callback]] = deque()
        self._sync_up_to = 0
        self._is_writing = False
        self._is_syncing = False
        self._flush_is_due = False
        self._full: Shortage | None = None
        self._unless_full: list[asyncio.Future[None]] = []
        self._is_waiting_for_space = False
        self._is_abandoned = False
        self.was_torn = False

    # -- recent drafts -------------------------------------------------------------------------------------------

    def keep_draft(self, entry: Entry, payload: Buffer) -> None:
        """Keep a draft in memory for a while. `payload` must never change."""
        self._options.recent.keep(self, entry, payload)

    def take_drafts(self, transaction: TransactionId, head: int) -> list[Draft]:
        """The last of a transaction's drafts, up to `head`, as far back as they are still in memory."""
        return self._options.recent.take(self, transaction, head)

    # -- opening -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Find the segments of an existing journal. Blocks. Raises DamagedJournal, StorageFailure."""
        make_directory(self.directory)
        found = list_directory(self.directory)
        for leftover in with_suffix(".tmp", found):
            delete_file(leftover)
        self._segments = [Segment.open(path, self._identity) for path in with_suffix(SUFFIX, found)]

    def recover(
        self, start: int, fold: Callable[[Recovered], None], ensure_whole: Callable[[], None] = lambda: None
    ) -> None:
        """Feed the sound entries from `start` on to `fold`, cut a torn tail, and be ready to append. Blocks.

        `start` is the checkpoint's position, so all before it is known to be durable. What is fed has been fsynced.
        `ensure_whole` is called before the cut, and may raise if more was durable. Raises DamagedJournal.
        """
        if not self._segments:
            if start:
                raise DamagedJournal(f"{self.directory} has no segments, but was checkpointed at {start}: restore it")
            ensure_whole()
            return
        if self._segments[0].base > start:
            raise DamagedJournal(
                f"{self.directory} begins at {self._segments[0].base}, behind its checkpoint at {start}"
            )
        holder = self.segment_of(start)
        if holder.allocated < holder.at(start):
            raise DamagedJournal(
                f"{holder.path} has {holder.allocated} bytes, and was checkpointed at byte {holder.at(start)}: "
                f"restore it from a backup or a replica"
            )
        if self._options.is_disk_in_doubt:
            for segment in self._segments:
                if segment.holds_any_behind(start):
                    segment.renew()
        end = start
        for recovered in read_entries(self._segments, start):
            if end == start:
                self._sync_what_was_found()
            self._fold_one(fold, recovered)
            end = recovered.entry.end
        self.was_torn = not is_blank_from(self._segments, end)
        if self.was_torn:
            ensure_torn(self._segments, end, known_durable=start, lost_power=self._options.lost_power)
        ensure_whole()
        if self.was_torn:
            self._cut(end)
        self.next_position = self.written_position = self.synced_position = self._sync_up_to = end

    def _sync_what_was_found(self) -> None:
        """What is read may stand in the page cache only. It must be durable before its effects stand in a log (I2),
        or they could outlive a loss of power that it does not, and be taken for what was shown.

        The directory needs no fsync: a segment's name is durable before there is an entry in it.
        """
        sync_files([segment.opened for segment in self._segments])

    def _fold_one(self, fold: Callable[[Recovered], None], recovered: Recovered) -> None:
        """Fold one entry. One that is whole and can't follow those before it stops this journal, not the start."""
        try:
            fold(recovered)
        except (FaircopyError, OSError):
            raise
        except Exception as error:
            raise self.misfit(recovered.entry.position, error) from error

    def misfit(self, position: int, error: Exception) -> DamagedJournal:
        """What to raise for an entry that is whole, and of which nothing can be made."""
        holder = self.segment_of(position)
        return DamagedJournal(
            f"{holder.path} holds an entry at byte {holder.at(position)} (journal position {position}) that can't "
            f"follow those before it ({error!r}): restore the file from a backup or a replica",
            holder.path,
            holder.at(position),
        )

    def _cut(self, end: int) -> None:
        """Remove what lies after `end`, for good: old bytes there must never be taken for entries later."""
        while len(self._segments) > 1 and self._segments[-1].base >= end:
            delete_file(self._segments.pop().path)
        last = self._segments[-1]
        last.opened.truncate(last.at(end))
        last.allocated = last.at(end)
        last.opened.sync()
        sync_directory(self.directory)

    def shrink(self) -> None:
        """Give back the space that is reserved for more entries, so that the next start finds nothing after the last
        one. Blocks. For a journal to which nothing more is appended.
        """
        if self._segments and self._segments[-1].file is not None:
            last = self._segments[-1]
            last.opened.truncate(last.at(self.next_position))
            last.allocated = last.at(self.next_position)

    # -- appending -----------------------------------------------------------------------------------------------

    @property
    def durable_position(self) -> int:
        """Up to here the journal is durable, as the broker's setting understands it."""
        return self.synced_position if self.is_synced_first else self.written_position

    def ensure_space(self) -> None:
        """Raise JournalFull while the disk is full: for what takes more space than it frees."""
        lacking = self._full or self.space.lacking
        if lacking is not None:
            raise JournalFull(f"{lacking}, and the broker goes on by itself")

    def ensure_reserve(self) -> None:
        """Raise JournalFull while this journal waits for space: for what frees space, or decides what was taken."""
        if self._full is not None:
            raise JournalFull(f"{self._full}, and the broker goes on by itself")

    def abandon(self) -> None:
        """The journal's files are to be deleted: write nothing more, and take no failure for one.

        Whoever waits is told as if it were durable: what they wait for goes with the rest, and nobody asks for it.
        """
        self._is_abandoned = True
        self._has_space()
        self._pending.clear()
        release(self._when_written, self.next_position)
        release(self._when_durable, self.next_position)

    @property
    def waits_for_space(self) -> bool:
        """Whether what was appended can't be written before the disk has space."""
        return self._full is not None

    @property
    def is_at_work(self) -> bool:
        """Whether a thread writes or syncs."""
        return self._is_writing or self._is_syncing

    def _fail(self, error: BaseException) -> None:
        if not self._is_abandoned:
            self._options.on_failure(error)

    def append(
        self,
        kind: Kind,
        payload: Buffer = b"",
        *,
        records: int = 0,
        previous: int = NOWHERE,
        transaction: TransactionId = NO_TRANSACTION,
        leader_epoch: int = 0,
    ) -> Entry:
        """Append an entry and return it. `payload` must not change until it is written."""
        length = HEADER_BYTES + len(payload)
        invariant(length <= MAX_LENGTH, "an entry's length fits 32 bits")
        segment = self._segment_for(length)
        position = self.next_position
        entry = Entry(kind, position, length, records, leader_epoch, previous, transaction, self.synced_position)
        header = encode_header(entry, payload, segment.seed)
        self._pending.append(PendingWrite(segment, position, length, [header, payload] if payload else [header]))
        self.next_position = position + length
        self._schedule_flush()
        return entry

    def when_written(self, callback: Callback) -> None:
        """Call back when all that is appended by now stands in the file."""
        if self.written_position >= self.next_position or self._is_abandoned:
            callback()
        else:
            self._when_written.append((self.next_position, callback))

    def when_durable(self, callback: Callback) -> None:
        """Call back, in order, when all that is appended by now is durable; this asks for an fdatasync."""
        if (self.durable_position >= self.next_position and not self._when_durable) or self._is_abandoned:
            callback()
            return
        self._when_durable.append((self.next_position, callback))
        self._sync_up_to = self.next_position
        self._schedule_flush()

    def when_durable_lazily(self, callback: Callback) -> None:
        """As `when_durable`, but leaves the fdatasync to others: nobody waits for this entry."""
        self._when_durable.append((self.next_position, callback))

    async def durable(self) -> None:
        """Wait until all that is appended by now is durable."""
        await self._told_by(self.when_durable)

    async def written(self) -> None:
        """Wait until all that is appended by now stands in the file, whatever a loss of power may take of it."""
        await self._told_by(self.when_written)

    async def _told_by(
        self, when: Callable[[Callable[[], None]], None], or_told: list[asyncio.Future[None]] | None = None
    ) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        if or_told is not None:
            or_told.append(future)

        when(lambda: tell(future))
        await future

    async def sync(self) -> None:
        """Wait until all that is appended by now is fsynced, whatever the durability setting.

        Raises JournalFull: nobody may have to wait for space.
        """
        self.ensure_reserve()
        await self._told_by(self.when_durable, self._unless_full)
        target = self.written_position
        if self.synced_position >= target:
            return
        try:
            await self._disk.run(sync_files, self._unsynced_files())
        except Exception as error:
            self._fail(error)
            raise
        self._synced(target)

    def _unsynced_files(self) -> list[File]:
        """The files that hold what is not synced, the older ones first. They stay open, whoever deletes them."""
        behind = [*(segment.base for segment in self._segments[1:]), self.next_position + 1]
        ends = zip(self._segments, behind, strict=True)
        return [segment.file for segment, end in ends if segment.file is not None and end > self.synced_position]

    def _segment_for(self, length: int) -> Segment:
        last = self._segments[-1] if self._segments else None
        if last is not None:
            used = self.next_position - last.base
            if used == 0 or used + length <= self._options.segment_bytes - SEGMENT_HEADER_BYTES:
                return last
        segment = Segment.planned(self.directory, self.next_position, self._options.new_salt())
        self._segments.append(segment)
        return segment

    # -- writing -------------------------------------------------------------------------------------------------

    def _schedule_flush(self) -> None:
        """Write once this tick of the loop is over, so that all its requests go in one write."""
        if not self._flush_is_due and not self._is_writing:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write what is pending. What is written already is synced at the same time, so neither waits for the other."""
        self._flush_is_due = False
        if self._pending and self._may_write():
            writes, self._pending = self._pending, []
            self.space.spend(self.next_position - writes[0].position)
            if self.space.lacking is not None and not self._may_use_reserve(writes):
                self._wait_for_space(writes, NoSpace(f"writing to {self.directory}: no space is left: free some"))
            elif self._is_small(writes):
                self._write_inline(writes)
            else:
                self._submit_writes(writes)
        self._sync_if_wanted()

    def _may_write(self) -> bool:
        return not (self._is_writing or self._is_waiting_for_space or self._is_abandoned or self._must_sync_first())

    def _must_sync_first(self) -> bool:
        """Whether so much is unsynced that a commit would wait long for its fdatasync."""
        return self._is_syncing and self.written_position - self.synced_position > 2 * UNSYNCED_LIMIT_BYTES

    def _may_use_reserve(self, writes: list[PendingWrite]) -> bool:
        """What was taken before the disk was full must leave something to what frees space."""
        size = sum(write.size for write in writes)
        return size <= INLINE_WRITE_BYTES or self.space.has_room_for(size)

    def _is_small(self, writes: list[PendingWrite]) -> bool:
        segment = writes[0].segment
        size = self.next_position - writes[0].position
        fits = segment.file is not None and segment.at(self.next_position) <= segment.allocated
        return fits and segment is writes[-1].segment and size <= INLINE_WRITE_BYTES

    def _write_inline(self, writes: list[PendingWrite]) -> None:
        try:
            write_all(writes)
        except Shortage as error:
            # Reserved space is no promise where files are copied on write (btrfs, ZFS).
            self._wait_for_space(writes, error)
            return
        except Exception as error:
            self._fail(error)
            raise
        self._wrote(self.next_position)

    def _submit_writes(self, writes: list[PendingWrite]) -> None:
        self._is_writing = True
        up_to = self.next_position

        def done(_result: object, error: BaseException | None) -> None:
            self._is_writing = False
            if isinstance(error, Shortage):
                self._wait_for_space(writes, error)
            elif error is not None:
                self._fail(error)
            else:
                self._wrote(up_to)
                self._flush()

        self._disk.submit(self._write_blocking, (writes,), done)

    def _write_blocking(self, writes: list[PendingWrite]) -> None:
        for write in writes:
            segment = write.segment
            if segment.file is None:
                segment.make(self._identity, self._options.segment_bytes)
            segment.reserve(segment.at(write.position + write.size), self._options.segment_bytes)
        write_all(writes)

    def _wait_for_space(self, writes: list[PendingWrite], error: Shortage) -> None:
        """Keep what was taken, take no more, and try again: what was appended already has its place in the order."""
        self._full = error
        self._is_waiting_for_space = True
        self._pending = writes + self._pending
        is_worth_it = self.space.waits(self, error)
        self._loop.call_later(0 if is_worth_it else NO_SPACE_RETRY_SECONDS, self._try_again)
        if not is_worth_it:
            self._refuse_waiting(error)

    def _refuse_waiting(self, error: Shortage) -> None:
        refused, self._unless_full = self._unless_full, []
        for waiting in refused:
            if not waiting.done():
                waiting.set_exception(JournalFull(str(error)))

    def _try_again(self) -> None:
        self._is_waiting_for_space = False
        self._flush()

    def _has_space(self) -> None:
        self._full = None
        self.space.goes_on(self)

    def _wrote(self, up_to: int) -> None:
        if self._full is not None:
            self._has_space()
        self.written_position = up_to
        release(self._when_written, self.written_position)
        release(self._when_durable, self.durable_position)

    # -- syncing -------------------------------------------------------------------------------------------------

    def _sync_if_wanted(self) -> None:
        """One fdatasync at a time; those who come meanwhile share the next."""
        if self._is_syncing or self._is_abandoned or not self._wants_sync():
            return
        self._is_syncing = True
        up_to = self.written_position

        def done(_result: object, error: BaseException | None) -> None:
            self._is_syncing = False
            if error is not None:
                self._fail(error)
            else:
                self._synced(up_to)

        self._disk.submit(sync_files, (self._unsynced_files(),), done)

    def _wants_sync(self) -> bool:
        unsynced = self.written_position - self.synced_position
        if self._options.durability is Durability.OS or not unsynced:
            return False
        return self._sync_up_to > self.synced_position or unsynced > UNSYNCED_LIMIT_BYTES

    def _synced(self, up_to: int) -> None:
        self.synced_position = max(self.synced_position, up_to)
        release(self._when_durable, self.durable_position)
        self._unless_full = [waiting for waiting in self._unless_full if not waiting.done()]
        self._flush()

    @property
    def segments(self) -> list[Segment]:
        """All segments that are not reclaimed; the last one is written to."""
        return list(self._segments)

    # -- reading and reclaiming ----------------------------------------------------------------------------------

    def segment_of(self, position: int) -> Segment:
        """The segment that holds `position`."""
        for segment in reversed(self._segments):
            if segment.base <= position:
                return segment
        raise DamagedJournal(f"{self.directory} no longer holds position {position}")

    @property
    def start_position(self) -> int:
        return self._segments[0].base if self._segments else self.next_position

    def reclaim_all(self) -> list[Segment]:
        """Forget all segments of a journal that is abandoned, and return them."""
        forgotten, self._segments = self._segments, []
        return forgotten

    def reclaim(self, below: int) -> list[Segment]:
        """Forget the segments that lie wholly below position `below` (I7) and return them; the last one stays."""
        keep = next((n for n, s in enumerate(self._segments[1:]) if s.base > below), len(self._segments) - 1)
        keep = max(keep, 0)
        forgotten, self._segments = self._segments[:keep], self._segments[keep:]
        return forgotten


def write_all(writes: list[PendingWrite]) -> None:
    """Write entries that follow one another with as few calls as there are segments. Blocks."""
    first = 0
    for number in range(1, len(writes) + 1):
        if number == len(writes) or writes[number].segment is not writes[first].segment:
            buffers = [buffer for write in writes[first:number] for buffer in write.buffers]
            writes[first].segment.write(buffers, writes[first].position)
            first = number


def sync_files(files: list[File]) -> None:
    """fdatasync each file, in this order. Blocks."""
    for file in files:
        file.sync()


def release(waiting: deque[tuple[int, Callback]], position: int) -> None:
    """Call those who wait for a position up to this one, in order."""
    while waiting and waiting[0][0] <= position:
        waiting.popleft()[1]()
