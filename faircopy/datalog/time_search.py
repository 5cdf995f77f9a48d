"""Finds an offset by time (ListOffsets): by the time index, then by batch headers, then inside one batch."""

from __future__ import annotations

from typing import NamedTuple

from faircopy.datalog.check import check_up_to
from faircopy.datalog.log import DataLog
from faircopy.datalog.read import ReadPlan, damaged, read_from_disk, walk
from faircopy.storage.disk_pool import DiskPool
from faircopy.wire.batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader
from faircopy.wire.compression import RecordsError, decompress
from faircopy.wire.record_times import find_record_by_time

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
    near = log.index.offset_before_time(time_ms)
    if near is None:
        return None
    offset = max(near, log.start_offset)
    while (plan := log.plan_read(offset)) is not None:
        found, offset = await disk.run(find_in_segment, plan, time_ms)
        if found is not None:
            return found
    return None


def find_in_segment(plan: ReadPlan, time_ms: int) -> tuple[TimedOffset | None, int]:
    """The message in this segment, or None, and the offset to continue from. Checks the batches it passes.
    Blocks.
    """
    next_offset = plan.offset
    for place, header in walk(plan, read_from_disk):
        next_offset = header.last_offset + 1
        if header.max_timestamp_ms >= time_ms and header.last_offset >= plan.offset:
            check_up_to(plan, place.byte + header.size_bytes)
            batch = read_from_disk(plan.segment, header.size_bytes, place.byte)
            return find_in_batch(batch, header, time_ms, plan.offset), next_offset
    check_up_to(plan, plan.visible_bytes)
    if next_offset <= plan.offset:
        # Otherwise the search would start here again and again.
        raise damaged(plan.segment, plan.near, f"ends before offset {plan.offset}")
    return None, next_offset


def find_in_batch(batch: bytes, header: BatchHeader, time_ms: int, first_offset: int) -> TimedOffset:
    """The message in a batch that has one. If the records can't be read, or are too large: the start of the
    batch, or `first_offset` if that is later, with the batch's greatest time.
    """
    codec = header.attributes & COMPRESSION_MASK
    first = max(0, first_offset - header.base_offset)
    try:
        section = decompress(codec, memoryview(batch)[HEADER_BYTES:], max(len(batch), SEARCHED_BYTES_AT_MOST))
        found = find_record_by_time(section, header, time_ms, first)
        if found is not None:
            return TimedOffset(header.base_offset + found[0], found[1])
    except RecordsError:
        pass
    return TimedOffset(max(header.base_offset, first_offset), header.max_timestamp_ms)
