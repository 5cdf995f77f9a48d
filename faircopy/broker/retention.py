"""Retention: which part of a log is old enough, or too much, and may go (retention.ms, retention.bytes)."""

from __future__ import annotations

from faircopy.broker.catalog import Catalog, HostedPartition, HostedTopic
from faircopy.storage.clock import Clock

UNLIMITED = -1


async def apply_retention(catalog: Catalog, clock: Clock) -> None:
    """Trim every log to its topic's retention, a whole segment at a time. The last segment always stays."""
    for hosted in list(catalog.topics.values()):
        for partition in hosted.partitions:
            if partition.failure is None:
                trim_partition(hosted, partition, clock.steady_ms())


def trim_partition(hosted: HostedTopic, partition: HostedPartition, now_ms: int) -> None:
    """Append a TRIM if the partition has segments to give up."""
    offset = start_offset_to_keep(hosted, partition, now_ms)
    if offset > partition.state.start_offset:
        partition.trim(offset, lambda: None)


def start_offset_to_keep(hosted: HostedTopic, partition: HostedPartition, now_ms: int) -> int:
    """The first offset of the oldest segment that stays."""
    segments = partition.log.segments
    spare_bytes = sum(segment.size for segment in segments) - hosted.retention_bytes
    for number, segment in enumerate(segments[:-1]):
        is_too_much = hosted.retention_bytes != UNLIMITED and spare_bytes >= segment.size
        is_old = hosted.retention_ms != UNLIMITED and segment.written_ms(now_ms) < now_ms - hosted.retention_ms
        if not is_too_much and not is_old:
            return segment.base_offset
        spare_bytes -= segment.size
        if number + 2 == len(segments):
            return segments[-1].base_offset
    return partition.log.start_offset
