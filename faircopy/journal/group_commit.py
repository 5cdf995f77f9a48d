"""Group commit: one write for all entries that are appended in a tick of the loop, one fdatasync for all
waiters.

At most one write and one fdatasync are in progress at a time, side by side. Entries that arrive meanwhile go
with the next ones. So all waiters of a file share an fdatasync, and those of several files run in parallel on
the disk threads. Small writes need no thread: they are made on the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from faircopy.journal.options import JournalOptions
from faircopy.journal.segment import Segment
from faircopy.journal.segments import Segments, sync_files
from faircopy.journal.space_wait import SpaceWait
from faircopy.journal.watermarks import Watermarks
from faircopy.loop.waiting import tell
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace, Shortage
from faircopy.storage.system import Buffer

UNSYNCED_LIMIT_BYTES = 8 << 20

Callback = Callable[[], None]


class WriteRun:
    """Entries that follow one another in one segment, and are written with one call."""

    __slots__ = ("buffers", "position", "segment", "size")

    def __init__(self, segment: Segment, position: int) -> None:
        self.segment = segment
        self.position = position
        self.size = 0
        self.buffers: list[Buffer] = []


class GroupCommit:
    """The entries of one journal that are appended, and not yet written or synced. Belongs to the event loop.

    It moves the journal's `marks`. `journal` is the identity in the headers of new segment files.
    """

    def __init__(
        self,
        segments: Segments,
        marks: Watermarks,
        journal: bytes,
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
    ) -> None:
        self._segments = segments
        self._marks = marks
        self._journal = journal
        self._disk = disk
        self._loop = loop
        self._options = options
        self._space = options.space
        self._on_moved = options.on_moved
        self._is_replicated = options.is_replicated
        self.space_wait = SpaceWait(options.space, loop)
        self._pending: list[WriteRun] = []
        self._when_kept: deque[tuple[int, Callback]] = deque()
        self._when_durable: deque[tuple[int, Callback]] = deque()
        self._sync_up_to = 0
        self._is_flush_due = False
        self._is_writing = False
        self._is_syncing = False
        self._is_abandoned = False

    # -- pending entries and waiters -------------------------------------------------------------------------

    def add(self, segment: Segment, header: bytes, payload: Buffer, length: int) -> None:
        """Append an entry of `length` bytes. `payload` must not change until it is written."""
        marks = self._marks
        if not self._pending or self._pending[-1].segment is not segment:
            self._pending.append(WriteRun(segment, marks.appended))
        run = self._pending[-1]
        run.buffers.append(header)
        if payload:
            run.buffers.append(payload)
        run.size += length
        marks.appended += length
        if not self._is_flush_due:
            self._schedule_flush()

    def when_kept(self, callback: Callback) -> None:
        """Call back when all entries appended so far are kept: see `Watermarks.kept`."""
        up_to = self._marks.appended
        if self._marks.kept >= up_to or self._is_abandoned:
            callback()
            return
        self._when_kept.append((up_to, callback))
        if self._is_replicated:
            # Only what is fsynced here is sent to other replicas: otherwise none of them would ever have it.
            self._request_sync(up_to)

    def when_durable(self, callback: Callback) -> None:
        """Call back, in order, when all entries appended so far are durable. This requests an fdatasync."""
        up_to = self._marks.appended
        if (self._marks.durable >= up_to and not self._when_durable) or self._is_abandoned:
            callback()
            return
        self._when_durable.append((up_to, callback))
        self._request_sync(up_to)

    def _request_sync(self, up_to: int) -> None:
        self._sync_up_to = up_to
        if not self._is_flush_due:
            self._schedule_flush()

    def when_durable_without_sync(self, callback: Callback) -> None:
        """Like `when_durable`, but does not request an fdatasync: nobody waits for this entry."""
        self._when_durable.append((self._marks.appended, callback))

    def request_sync(self) -> None:
        """Request an fdatasync of all entries appended so far; nobody is called back."""
        self._request_sync(self._marks.appended)

    async def sync(self) -> None:
        """Wait until all entries appended so far are fsynced, whatever the durability setting.

        Raises JournalFull instead of waiting for space.
        """
        self.space_wait.ensure_reserve()
        durable: asyncio.Future[None] = self._loop.create_future()
        self.space_wait.refuse_if_full(durable)
        self.when_durable(lambda: tell(durable))
        await durable
        target = self._marks.written
        if self._marks.synced < target:
            await self._sync_now(target)

    async def _sync_now(self, target: int) -> None:
        try:
            await self._disk.run(sync_files, self._segments.files_beyond(self._marks.synced))
        except Exception as error:
            self._fail(error)
            raise
        self._synced(target)

    def abandon(self) -> None:
        """The journal's files are about to be deleted: write nothing more, and ignore failures.

        All waiters are notified as if their entries were durable, since these are deleted with the rest.
        """
        self._is_abandoned = True
        self.space_wait.end()
        self._pending.clear()
        release(self._when_kept, self._marks.appended)
        release(self._when_durable, self._marks.appended)

    @property
    def is_at_work(self) -> bool:
        """Whether a thread is writing or syncing."""
        return self._is_writing or self._is_syncing

    def _fail(self, error: BaseException) -> None:
        if not self._is_abandoned:
            self._options.on_failure(error)

    # -- writing ---------------------------------------------------------------------------------------------

    def _schedule_flush(self) -> None:
        """Write when this tick of the loop is over, so that all its entries go in one write."""
        if not self._is_writing:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the pending entries, and sync those already written; neither waits for the other."""
        self._is_flush_due = False
        if self._pending and self._may_write():
            runs, self._pending = self._pending, []
            size = self._marks.appended - runs[0].position
            self._space.spend(size)
            if self._space.shortage is not None and not self._may_use_reserve(size):
                error = NoSpace(f"writing to {self._segments.directory}: no space is left: free some")
                self._wait_for_space(runs, error)
            elif self._is_small(runs, size):
                self._write_inline(runs)
            else:
                self._submit_write(runs)
        if self._wants_sync():
            self._start_sync()

    def _may_write(self) -> bool:
        if self._is_writing or self._is_abandoned or self.space_wait.is_pausing:
            return False
        # If much is unsynced, a commit would wait long for its fdatasync: syncing comes first.
        return not self._is_syncing or self._marks.written - self._marks.synced <= 2 * UNSYNCED_LIMIT_BYTES

    def _may_use_reserve(self, size: int) -> bool:
        """Whether `size` bytes may be written on a full disk: entries accepted before must leave space for
        those that free space."""
        return size <= self._disk.inline_write_bytes or self._space.has_room_for(size)

    def _is_small(self, runs: list[WriteRun], size: int) -> bool:
        """Whether the entries are few bytes and fit into the reserved space of one file, so writing is
        fast."""
        segment = runs[0].segment
        fits = segment.file is not None and segment.at(self._marks.appended) <= segment.allocated
        return fits and runs[-1].segment is segment and size <= self._disk.inline_write_bytes

    def _write_inline(self, runs: list[WriteRun]) -> None:
        try:
            write_all(runs)
        except Shortage as error:
            # Reserved space guarantees nothing on copy-on-write file systems (btrfs, ZFS).
            self._wait_for_space(runs, error)
            return
        except Exception as error:
            self._fail(error)
            raise
        self._wrote(self._marks.appended)

    def _submit_write(self, runs: list[WriteRun]) -> None:
        self._is_writing = True
        up_to = self._marks.appended

        def done(_result: object, error: BaseException | None) -> None:
            self._is_writing = False
            if isinstance(error, Shortage):
                self._wait_for_space(runs, error)
            elif error is not None:
                self._fail(error)
            else:
                self._wrote(up_to)
                self._flush()

        self._disk.submit(self._write_blocking, (runs,), done)

    def _write_blocking(self, runs: list[WriteRun]) -> None:
        limit = self._options.segment_bytes
        for run in runs:
            if run.segment.file is None:
                run.segment.make(self._journal, limit)
            run.segment.reserve(run.segment.at(run.position + run.size), limit)
        write_all(runs)

    def _wait_for_space(self, runs: list[WriteRun], error: Shortage) -> None:
        self._pending = runs + self._pending
        self.space_wait.start(error, self._flush)

    def _wrote(self, up_to: int) -> None:
        if self.space_wait.shortage is not None:
            self.space_wait.end()
        self._marks.note_written(up_to)
        if self._when_kept:  # rarely: this saves calls on the path of each write
            release(self._when_kept, self._marks.kept)
        if self._when_durable:
            release(self._when_durable, self._marks.durable)
        if self._on_moved is not None:
            self._on_moved(self._journal)

    # -- syncing ---------------------------------------------------------------------------------------------

    def _wants_sync(self) -> bool:
        """Whether to start an fdatasync. Waiters that arrive while one is in progress share the next one."""
        if not self._marks.is_synced_first or self._is_syncing or self._is_abandoned:
            return False
        unsynced = self._marks.written - self._marks.synced
        return unsynced > UNSYNCED_LIMIT_BYTES or (unsynced > 0 and self._sync_up_to > self._marks.synced)

    def _start_sync(self) -> None:
        self._is_syncing = True
        up_to = self._marks.written

        def done(_result: object, error: BaseException | None) -> None:
            self._is_syncing = False
            if error is not None:
                self._fail(error)
            else:
                self._synced(up_to)

        self._disk.submit(sync_files, (self._segments.files_beyond(self._marks.synced),), done)

    def _synced(self, up_to: int) -> None:
        self._marks.note_synced(up_to)
        release(self._when_durable, self._marks.durable)
        if self._on_moved is not None:
            self._on_moved(self._journal)
        self._flush()

    # -- other replicas --------------------------------------------------------------------------------------

    def note_replicated(self, durable_up_to: int, drafts_up_to: int) -> None:
        """See `Watermarks.note_replicated`."""
        self._marks.note_replicated(durable_up_to, drafts_up_to)
        release(self._when_kept, self._marks.kept)
        release(self._when_durable, self._marks.durable)


def write_all(runs: list[WriteRun]) -> None:
    """Write runs of entries, each with one call. Blocks."""
    for run in runs:
        run.segment.write(run.buffers, run.position)


def release(waiting: deque[tuple[int, Callback]], position: int) -> None:
    """Call the waiters for positions up to this one, in order."""
    while waiting and waiting[0][0] <= position:
        waiting.popleft()[1]()
