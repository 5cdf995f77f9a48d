"""The bytes of files that hold the messages between two offsets, for readers outside the broker."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from faircopy.datalog.log import DataLog
from faircopy.datalog.read import ReadPlan, locate, read_from_disk
from faircopy.storage.disk_pool import DiskPool


class ByteRange(NamedTuple):
    """Whole batches: `size` bytes of a segment file, from byte `position` on."""

    path: Path
    position: int
    size: int


async def byte_ranges(log: DataLog, disk: DiskPool, first_offset: int, end_offset: int) -> list[ByteRange]:
    """The batches from the one that holds `first_offset` up to `end_offset`, which is visible and the start
    of a batch.

    Raises OffsetOutOfRange, DamagedLog.
    """
    if first_offset == end_offset:
        return []
    plan = log.plan_read(first_offset)
    assert plan is not None, "the first offset is below the end"
    end = await end_of(log, disk, end_offset)
    ranges = []
    for segment in log.segments:
        if plan.segment.base_offset <= segment.base_offset <= end.segment.base_offset:
            begin = plan.near.byte if segment is plan.segment else 0
            piece_end = end.near.byte if segment is end.segment else segment.size
            ranges.append(ByteRange(segment.path, begin, piece_end - begin))
    return [each for each in ranges if each.size]


async def end_of(log: DataLog, disk: DiskPool, end_offset: int) -> ReadPlan:
    """A plan whose near place is exactly where the batch of `end_offset` starts, or will start."""
    plan = log.plan_read(end_offset)
    if plan is not None:
        return plan._replace(near=await disk.run(locate, plan, read_from_disk))
    assert log.visible_end is not None, "a log that has offsets has an end"
    segment = log.segment(log.visible_end.segment_base)
    near = log.place_of_end()
    return ReadPlan(segment, near, end_offset, near.byte)
