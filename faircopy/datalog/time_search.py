"""Finds messages by time (ListOffsets): by the latest times of segments, then by those of their stretches in
the index, then by batch headers, then inside one batch.

All of these times only say that nothing is later: messages that were deleted may have been, and what older
versions wrote is less well known. So a search that finds nothing in one place goes on in the next. What it
finds depends on nothing but what the log holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from faircopy.datalog.check import check_up_to
from faircopy.datalog.index import Place, SparseIndex, Stretch
from faircopy.datalog.log import DataLog
from faircopy.datalog.read import ReadPlan, read_from_disk, walk
from faircopy.datalog.segment import UNKNOWN_MS, LogSegment
from faircopy.storage.disk_pool import DiskPool
from faircopy.wire.batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader
from faircopy.wire.compression import Bytes, RecordsError, decompress
from faircopy.wire.record_times import TimedRecord, find_greatest_time, find_record_by_time

SEARCHED_BYTES_AT_MOST = 32 * 1024 * 1024
"""Several searches run at once: a few kilobytes from a client must not make each of them use as much memory
as the largest batch may.
"""


class TimedOffset(NamedTuple):
    """A message's offset and its time."""

    offset: int
    timestamp_ms: int


async def find_time(log: DataLog, disk: DiskPool, time_ms: int) -> TimedOffset | None:
    """The first message, by offset, whose time is `time_ms` or later; None if there is none."""
    for segment in tuple(log.segments):
        if segment.latest_ms >= time_ms:
            found = await disk.run(find_in_segment, search_of(log, segment), time_ms)
            if found is not None:
                return found
    return None


async def find_latest(log: DataLog, disk: DiskPool) -> TimedOffset | None:
    """The first message, by offset, that has the greatest time; None if there are no messages."""
    best: TimedOffset | None = None
    for segment in sorted(log.segments, key=lambda segment: -segment.latest_ms):
        if may_beat(segment.latest_ms, segment.base_offset, best):
            best = await disk.run(find_latest_in_segment, search_of(log, segment), best)
    return best


def may_beat(latest_ms: int, first_offset: int, best: TimedOffset | None) -> bool:
    """Whether messages from this offset on, none of them later than `latest_ms`, may include a later one than
    `best`, or an earlier one of its time.
    """
    return best is None or (latest_ms, -first_offset) > (best.timestamp_ms, -best.offset)


class SegmentSearch(NamedTuple):
    """What a thread needs to search the messages of a segment, from `start_offset` on."""

    segment: LogSegment
    sparse_index: SparseIndex
    in_memory: list[Stretch]
    start_offset: int
    visible_bytes: int

    def stretches(self) -> Iterator[tuple[ReadPlan, int]]:
        """For each stretch, a plan that ends where it does, and the time that none of its messages is later
        than. Those before the start are left out.
        """
        base = self.segment.base_offset
        end = Stretch(Place(self.start_offset + 1, base, self.visible_bytes), UNKNOWN_MS)
        for stretch, following in pairwise([*self._listed(), end]):
            if following.place.offset > self.start_offset:
                plan = ReadPlan(self.segment, stretch.place, self.start_offset, following.place.byte)
                yield plan, stretch.latest_ms

    def _listed(self) -> list[Stretch]:
        base = self.segment.base_offset
        end_of_stored = self.in_memory[0].place.byte if self.in_memory else self.visible_bytes
        # By now, the store may also have those that were in memory.
        stored = [each for each in self.sparse_index.in_store(base) if each.place.byte < end_of_stored]
        listed = [*stored, *self.in_memory]
        if listed and listed[0].place.byte == 0:
            return listed
        return [Stretch(Place(base, base, 0), UNKNOWN_MS), *listed]


def search_of(log: DataLog, segment: LogSegment) -> SegmentSearch:
    """The search of a segment as it is now."""
    in_memory = log.index.in_memory(segment.base_offset)
    return SegmentSearch(segment, log.index, in_memory, log.start_offset, log.visible_bytes(segment))


def find_in_segment(search: SegmentSearch, time_ms: int) -> TimedOffset | None:
    """The first message of the segment whose time is `time_ms` or later; None if there is none. Blocks.

    Raises DamagedLog, DamagedState, StorageFailure.
    """
    for plan, latest_ms in search.stretches():
        if latest_ms >= time_ms:
            for place, header in passed(plan):
                if header.max_timestamp_ms >= time_ms:
                    batch = read_checked(plan, place, header)
                    found = find_in_batch(batch, header, time_ms, search.start_offset)
                    if found is not None:
                        return found
    return None


def find_latest_in_segment(search: SegmentSearch, best: TimedOffset | None) -> TimedOffset | None:
    """The first message that has the greatest time, of those of the segment and `best`. Blocks.

    Raises as `find_in_segment` does.
    """
    for plan, latest_ms in sorted(search.stretches(), key=lambda stretch: -stretch[1]):
        if may_beat(latest_ms, plan.near.offset, best):
            for place, header in passed(plan):
                if may_beat(header.max_timestamp_ms, header.base_offset, best):
                    batch = read_checked(plan, place, header)
                    found = find_latest_in_batch(batch, header, search.start_offset)
                    if found is not None and may_beat(found.timestamp_ms, found.offset, best):
                        best = found
    return best


def passed(plan: ReadPlan) -> Iterator[tuple[Place, BatchHeader]]:
    """The batches of a stretch that have messages from the plan's offset on. When all are passed, they are
    checked.
    """
    for place, header in walk(plan, read_from_disk):
        if header.last_offset >= plan.offset:
            yield place, header
    check_up_to(plan, plan.visible_bytes)


def read_checked(plan: ReadPlan, place: Place, header: BatchHeader) -> bytes:
    """A batch of a stretch, once everything up to its end is checked."""
    check_up_to(plan, place.byte + header.size_bytes)
    return read_from_disk(plan.segment, header.size_bytes, place.byte)


def find_in_batch(batch: bytes, header: BatchHeader, time_ms: int, start_offset: int) -> TimedOffset | None:
    """The first message of a batch, from `start_offset` on, whose time is `time_ms` or later. If the records
    can't be read, or are too large: the first message from `start_offset` on, with the batch's greatest time.
    """
    return in_batch(batch, header, start_offset, partial(find_record_by_time, time_ms=time_ms))


def find_latest_in_batch(batch: bytes, header: BatchHeader, start_offset: int) -> TimedOffset | None:
    """The first message of a batch, from `start_offset` on, that has the greatest time. If the records can't
    be read, or are too large: as `find_in_batch`.
    """
    return in_batch(batch, header, start_offset, find_greatest_time)


def in_batch(
    batch: bytes,
    header: BatchHeader,
    start_offset: int,
    find: Callable[[Bytes, BatchHeader, int], TimedRecord | None],
) -> TimedOffset | None:
    """What `find` finds among the records of a batch, given the number of the first one that counts."""
    codec, first = header.attributes & COMPRESSION_MASK, max(0, start_offset - header.base_offset)
    try:
        section = decompress(codec, memoryview(batch)[HEADER_BYTES:], max(len(batch), SEARCHED_BYTES_AT_MOST))
        found = find(section, header, first)
    except RecordsError:
        return TimedOffset(header.base_offset + first, header.max_timestamp_ms)
    return TimedOffset(header.base_offset + found.number, found.time_ms) if found is not None else None
