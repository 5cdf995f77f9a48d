"""The visible log of one partition.

The copier is the only writer (I1). It places batches (decides on segment and byte), writes them on the loop
or on a thread, and then shows them, which moves the high watermark: readers see them only from then on.
Offsets are contiguous (P3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faircopy.datalog.index import Place, SparseIndex
from faircopy.datalog.leftovers import Leftovers
from faircopy.datalog.read import DamagedLog, ReadPlan
from faircopy.datalog.segment import SUFFIX, LogSegment, file_name
from faircopy.datalog.segment_times import SegmentTimes
from faircopy.errors import FaircopyError, invariant
from faircopy.storage.epoch_history import NO_EPOCHS, Epochs
from faircopy.storage.paths import list_files, make_directory
from faircopy.storage.state_store import Change, StateStore
from faircopy.storage.system import Buffer

RECENT_BATCHES = 256


class OffsetOutOfRange(FaircopyError):
    """An offset lies before the log's start or after its end."""


class LogEnd(NamedTuple):
    """The end of a data log, as a checkpoint stores it: the last segment and its size in bytes."""

    segment_base: int
    byte: int


class PlacedBatch(NamedTuple):
    """A batch with its place: `buffers` are written one after another, from `byte` of `segment` on."""

    segment: LogSegment
    byte: int
    size: int
    base_offset: int
    records: int
    max_time_ms: int
    buffers: tuple[Buffer, ...]


class DataLog:
    """Segments, index and bounds of one partition's visible log. `end_offset` is the high watermark."""

    def __init__(
        self,
        directory: Path,
        identity: bytes,
        store: StateStore,
        segment_bytes: int,
        steady_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`steady_ms` is the clock for the ages of segments."""
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.identity = identity
        self._store = store
        self.segments: list[LogSegment] = []
        self.index = SparseIndex(identity, store)
        self.times = SegmentTimes(identity, store)
        self._steady_ms = steady_ms
        self._must_roll = False
        self.start_offset = 0
        self.end_offset = 0
        self.shown_bytes = 0
        self.visible_end: LogEnd | None = None
        self._placed_end_offset = 0
        self._recent: deque[Place] = deque(maxlen=RECENT_BATCHES)
        self._unsynced: list[LogSegment] = []
        self._gone: list[LogSegment] = []
        self._found_paths: list[Path] = []
        # A dict, not a set: watchers are called in the order in which they came.
        self._watchers: dict[Callable[[], None], None] = {}

    # -- opening ---------------------------------------------------------------------------------------------

    def open(
        self, end: LogEnd | None, start_offset: int, end_offset: int, epochs: Epochs = NO_EPOCHS
    ) -> None:
        """Open the log up to the checkpoint's end (I6), written under these leader epochs. The fold then
        writes again what follows, over what is there, and the `leftovers` are dropped last. Until then
        nothing is deleted, since the journal may turn out to be damaged. Blocks. Raises DamagedLog.
        """
        make_directory(self.directory)
        found = [self._found(path, epochs) for path in list_files(self.directory, SUFFIX)]
        self._found_paths = [segment.path for segment in found]
        if end is not None:
            self.segments = [segment for segment in found if segment.base_offset <= end.segment_base]
            self._begin_again_at(end)
            self.times.restore(self.segments)
        self.visible_end = end
        self.index = SparseIndex(self.identity, self._store)
        self.start_offset, self.end_offset, self._placed_end_offset = start_offset, end_offset, end_offset
        self.trim(start_offset)  # a crash may have left trimmed segments, or brought them back

    def _found(self, path: Path, epochs: Epochs) -> LogSegment:
        if not (path.stem.isascii() and path.stem.isdigit()):
            raise DamagedLog(f"{path} is not a log segment, by its name: move it elsewhere")
        return LogSegment.found(path, epochs)

    def _begin_again_at(self, end: LogEnd) -> None:
        last = self.segments[-1] if self.segments else None
        if last is None or last.base_offset != end.segment_base or last.size < end.byte:
            raise DamagedLog(
                f"{self.directory} should end in {file_name(end.segment_base)} at byte {end.byte} or later, "
                f"but does not: restore it from a backup or a replica"
            )
        last.begin_again_at(end.byte)

    def leftovers(self) -> Leftovers:
        """What the files hold besides the log, once the fold has written everything it has."""
        kept = [*self._gone, *self.segments]
        paths = {segment.path for segment in kept}
        dropped = [path for path in self._found_paths if path not in paths]
        return Leftovers(
            self.directory, self.end_offset, kept[-1] if kept else None, list(self.segments), dropped
        )

    # -- writing ---------------------------------------------------------------------------------------------

    @property
    def end(self) -> LogEnd | None:
        """The end of the placed log: the log end offset, as a place."""
        return LogEnd(self.segments[-1].base_offset, self.segments[-1].size) if self.segments else None

    @property
    def size_bytes(self) -> int:
        """The size of the placed log."""
        return sum(segment.size for segment in self.segments)

    def place(
        self, base_offset: int, records: int, size: int, max_time_ms: int, buffers: tuple[Buffer, ...]
    ) -> PlacedBatch:
        """Give the next batch its place. Batches must be written and shown in the order of their places."""
        invariant(base_offset == self._placed_end_offset, "P3: offsets in a data log are contiguous")
        segment = self._segment_for(base_offset, size)
        batch = PlacedBatch(segment, segment.size, size, base_offset, records, max_time_ms, buffers)
        segment.size += size
        self._placed_end_offset = base_offset + records
        return batch

    def _segment_for(self, base_offset: int, size: int) -> LogSegment:
        if self.segments and (self.segments[-1].size == 0 or self._has_room(self.segments[-1], size)):
            segment = self.segments[-1]
        else:
            segment = LogSegment(self.directory / file_name(base_offset), base_offset, 0, is_new=True)
            self.segments.append(segment)
            self._must_roll = False
        if not self._unsynced or self._unsynced[-1] is not segment:
            self._unsynced.append(segment)
        return segment

    def _has_room(self, segment: LogSegment, size: int) -> bool:
        return not self._must_roll and segment.size + size <= self.segment_bytes

    def show(self, batches: list[PlacedBatch]) -> None:
        """Make written batches visible: move the high watermark past them, and wake the watchers."""
        for batch in batches:
            self.index.add(
                batch.base_offset, batch.segment.base_offset, batch.byte, batch.size, batch.max_time_ms
            )
            batch.segment.latest_ms = max(batch.segment.latest_ms, batch.max_time_ms)
            self.shown_bytes += batch.size
            self._recent.append(Place(batch.base_offset, batch.segment.base_offset, batch.byte))
        last = batches[-1]
        self.end_offset = last.base_offset + last.records
        self.visible_end = LogEnd(last.segment.base_offset, last.byte + last.size)
        self.notify()

    def notify(self) -> None:
        """Wake those who watch the log."""
        for watcher in tuple(self._watchers):
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called each time the end moves, until `unwatch`."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`."""
        self._watchers.pop(watcher, None)

    def give_back_unsynced(self, segments: list[LogSegment]) -> None:
        """Take back segments that could not be synced: they still have to be."""
        self._unsynced = [*(each for each in segments if each not in self._unsynced), *self._unsynced]

    def take_unsynced(self) -> list[LogSegment]:
        """The segments written since the last call; the caller fsyncs them."""
        unsynced, self._unsynced = self._unsynced, []
        if unsynced:
            self._unsynced = [unsynced[-1]]
        return unsynced

    # -- times -----------------------------------------------------------------------------------------------

    def stamp(self) -> int:
        """Note when segments were written. Returns the steady clock's time."""
        now_ms = self._steady_ms()
        self.times.stamp(self.segments, now_ms)
        return now_ms

    def roll(self) -> None:
        """Make the next batch start a new segment."""
        self._must_roll = True

    # -- trimming --------------------------------------------------------------------------------------------

    def trim(self, start_offset: int) -> None:
        """Move the start. Segments wholly below it are no longer read, and may be deleted (`take_gone`)."""
        self.start_offset = max(self.start_offset, start_offset)
        while self.segments and self._end_of_first() <= self.start_offset:
            self._gone.append(self.segments.pop(0))

    def _end_of_first(self) -> int:
        return self.segments[1].base_offset if len(self.segments) > 1 else self._placed_end_offset

    @property
    def first_base(self) -> int:
        """The base offset of the segment in which the log starts, or would start."""
        return self.segments[0].base_offset if self.segments else self._placed_end_offset

    @property
    def has_gone(self) -> bool:
        """Whether segments wait to be deleted."""
        return bool(self._gone)

    def take_gone(self, checkpointed: int) -> tuple[list[LogSegment], list[Change]]:
        """The segments that may be deleted now, and the changes that drop them from the index.

        These are only the ones below `checkpointed`, the `first_base` of the last checkpoint: recovery begins
        with the start and the segments that the checkpoint knows (I6).
        """
        gone = [segment for segment in self._gone if segment.base_offset < checkpointed]
        self._gone = self._gone[len(gone) :]
        return gone, [self.index.trim(checkpointed), self.times.trim(checkpointed)] if gone else []

    def kept_segments(self) -> list[LogSegment]:
        """All segments that have a file, including those below the start."""
        return [*self._gone, *self.segments]

    def close(self) -> None:
        """Close the files, which must be synced (I10). They are opened again when they are used."""
        for segment in self.kept_segments():
            segment.close()

    # -- reading ---------------------------------------------------------------------------------------------

    def plan_read(self, offset: int) -> ReadPlan | None:
        """A plan for reading from `offset` on, on any thread; None at the end of the log.

        Raises OffsetOutOfRange, DamagedLog.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"offset {offset} is outside {self.start_offset} to {self.end_offset}")
        if offset == self.end_offset:
            return None
        near = self.place_at_or_before(offset)
        segment = self.segment(near.segment_base)
        return ReadPlan(segment, near, offset, self.visible_bytes(segment))

    def goes_on_after(self, plan: ReadPlan) -> bool:
        """Whether messages are visible in later segments than the one that the plan reads."""
        return self.visible_end is not None and plan.segment.base_offset < self.visible_end.segment_base

    def place_at_or_before(self, offset: int) -> Place:
        """The nearest known place at or before `offset`, which is in the log. Raises DamagedLog."""
        if self._recent and self._recent[0].offset <= offset:
            return next(place for place in reversed(self._recent) if place.offset <= offset)
        place = self.index.place_at_or_before(offset)
        if place is not None and place.segment_base >= self.segments[0].base_offset:
            return place
        first = self.segments[0].base_offset
        if first > offset:
            raise DamagedLog(
                f"{self.directory} should hold offset {offset}, but starts with {first}: restore it"
            )
        return Place(first, first, 0)

    def place_of_end(self) -> Place:
        """The place of the high watermark: where the next visible batch will start."""
        base, byte = self.visible_end or LogEnd(0, 0)
        return Place(self.end_offset, base, byte)

    def visible_bytes(self, segment: LogSegment) -> int:
        """How many bytes of a segment are visible: all but those that are placed and not yet shown."""
        if self.visible_end is None or segment.base_offset > self.visible_end.segment_base:
            return 0
        return self.visible_end.byte if segment.base_offset == self.visible_end.segment_base else segment.size

    def segment(self, base_offset: int) -> LogSegment:
        """The segment with this base offset."""
        for segment in reversed(self.segments):
            if segment.base_offset == base_offset:
                return segment
        raise DamagedLog(f"{self.directory} no longer holds the segment of offset {base_offset}")
