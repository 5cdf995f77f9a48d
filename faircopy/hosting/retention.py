"""Retention: deletes what is too old or too much in a log (retention.ms, retention.bytes, segment.ms)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from faircopy.datalog.log import DataLog
from faircopy.datalog.segment import LogSegment
from faircopy.hosting.hosted_topic import UNLIMITED, HostedTopic
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.partition.hosted import HostedPartition
from faircopy.storage.expiry import Expired

logger = logging.getLogger(__name__)

UnpublishedFrom = Callable[[HostedPartition], int | None]
"""The first offset of a partition that a plain table still waits for; None if no table does."""


async def apply_retention(
    topics: HostedTopics, unpublished_from: UnpublishedFrom, unpublished_bytes_max: int
) -> Expired:
    """Trim every log to its topic's retention, by whole segments. Returns how many logs lose all that they
    have.
    """
    emptied = filled = 0
    for hosted in list(topics.topics.values()):
        for partition in hosted.partitions:
            if partition.failure is None:
                has_messages = partition.log.end_offset > partition.log.start_offset
                offset = trim_partition(hosted, partition, unpublished_from(partition), unpublished_bytes_max)
                filled += has_messages
                emptied += has_messages and offset == partition.log.end_offset
    return Expired(emptied, filled)


def trim_partition(
    hosted: HostedTopic,
    partition: HostedPartition,
    unpublished_from: int | None = None,
    unpublished_bytes_max: int = 0,
) -> int:
    """Append a TRIM if the partition has segments to give up. Roll the log if the last segment is old.

    Returns the first offset that stays.
    """
    log = partition.log
    now_ms = log.stamp()
    start_offset = partition.state.start_offset
    offset = start_offset_to_keep(hosted, partition, now_ms)
    # No table waits for what DeleteRecords has deleted.
    waits_from = max(unpublished_from, start_offset) if unpublished_from is not None else offset
    if offset > waits_from:
        offset = start_offset_to_publish(log, offset, waits_from, unpublished_bytes_max)
        if offset > waits_from:
            logger.error(
                "%s: offsets %d to %d are deleted though their plain table does not have them yet: more than "
                "%d bytes wait for it (setting plain.unpublished.max.bytes)",
                partition.name,
                waits_from,
                offset - 1,
                unpublished_bytes_max,
            )
    if offset > start_offset:
        limits = limits_of(hosted, log, offset, now_ms)
        partition.trim(offset, lambda: None)
        logger.info("%s: offsets %d to %d are deleted (%s)", partition.name, start_offset, offset - 1, limits)
    if log.segments and is_older(log.segments[-1].began_ms, hosted.segment_ms, now_ms):
        log.roll()
    return offset


def limits_of(hosted: HostedTopic, log: DataLog, offset: int, now_ms: int) -> str:
    """The settings by which the segments before `offset` are given up."""
    given_up = [segment for segment in log.segments if segment.base_offset < offset]
    are_expired = [is_expired(segment, hosted, now_ms) for segment in given_up]
    limits = [f"retention.ms={hosted.retention_ms}"] if any(are_expired) else []
    limits += [] if all(are_expired) else [f"retention.bytes={hosted.retention_bytes}"]
    return " and ".join(limits)


def start_offset_to_keep(hosted: HostedTopic, partition: HostedPartition, now_ms: int) -> int:
    """The first offset of the oldest segment that stays. Only visible segments may be deleted.

    Expiry by age may delete all segments; the size limit never deletes the last one.
    """
    log = partition.log
    spare_bytes = sum(segment.size for segment in log.segments) - hosted.retention_bytes
    offset = log.start_offset
    ends = [*(segment.base_offset for segment in log.segments), log.end_offset][1:]
    for segment, end in zip(log.segments, ends, strict=True):
        is_last = segment is log.segments[-1]
        is_too_much = hosted.retention_bytes != UNLIMITED and spare_bytes >= segment.size and not is_last
        if end > log.end_offset or not (is_too_much or is_expired(segment, hosted, now_ms)):
            break
        spare_bytes -= segment.size
        offset = end
    return offset


def start_offset_to_publish(log: DataLog, offset: int, unpublished_from: int, bytes_max: int) -> int:
    """The start of the log if retention asks for `offset`, and a plain table still waits for what begins at
    `unpublished_from`: then segments with such messages stay, the newest ones, of up to `bytes_max`.
    """
    ends = [*(segment.base_offset for segment in log.segments), log.end_offset][1:]
    waiting_bytes = 0
    for segment, end in reversed(list(zip(log.segments, ends, strict=True))):
        if end > offset:
            continue
        waiting_bytes += segment.size
        if end <= unpublished_from or waiting_bytes > bytes_max:
            return end
    return log.start_offset


def is_expired(segment: LogSegment, hosted: HostedTopic, now_ms: int) -> bool:
    """Whether a whole segment is older than its topic's retention."""
    return hosted.retention_ms != UNLIMITED and is_older(segment.written_ms, hosted.retention_ms, now_ms)


def is_older(since_ms: int | None, age_ms: int, now_ms: int) -> bool:
    """Whether a moment lies back by more than `age_ms`. False if it is not known."""
    return since_ms is not None and now_ms - since_ms > age_ms
