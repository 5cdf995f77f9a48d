"""How a range of offsets is divided among tasks. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from faircopy.client import OffsetRange
from faircopy.client.brokers import TopicPartition


class Split(NamedTuple):
    """What one task reads."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: bytes
    """That of the topic for which it was planned. One that has its name now may be another."""


def splits(
    ranges: Mapping[TopicPartition, OffsetRange],
    topic_ids: Mapping[str, bytes],
    at_least: int,
    rows_max: int | None,
) -> Sequence[Split]:
    """One split for each partition with something to read; more if there must be at least so many, or if none
    may have more than so many rows.
    """
    sizes = {each: end - start for each, (start, end) in ranges.items() if end > start}
    total = sum(sizes.values())
    found = []
    for (topic, partition), size in sizes.items():
        count = max(1, round(size / total * at_least)) if len(sizes) < at_least else 1
        if rows_max is not None:
            count = max(count, -(-size // rows_max))
        start = ranges[topic, partition].start
        pairs = itertools.pairwise(start + size * number // count for number in range(count + 1))
        found += [Split(topic, partition, *pair, topic_ids[topic]) for pair in pairs if pair[0] < pair[1]]
    return found


ROWS_TOGETHER = 10_000
"""Ranges that have so few rows in all are read by one task: starting it takes longer than reading them."""


def tasks(found: Sequence[Split], at_least: int, rows_max: int | None) -> list[tuple[Split, ...]]:
    """What each task reads: one split, or several small ones, unless there must be at least so many tasks. No
    task gets more than so many rows.
    """
    if at_least > 1:
        return [(split,) for split in found]
    together = ROWS_TOGETHER if rows_max is None else min(ROWS_TOGETHER, rows_max)
    grouped: list[tuple[Split, ...]] = []
    rows = 0
    for split in found:
        size = split.end - split.start
        if grouped and rows + size <= together:
            grouped[-1] += (split,)
            rows += size
        else:
            grouped.append((split,))
            rows = size
    return grouped
