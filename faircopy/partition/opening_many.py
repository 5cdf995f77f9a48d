"""Opens many partitions, several at a time, since they wait for the disk and not for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from faircopy.partition.hosted import HostedPartition
from faircopy.storage.disk_pool import DiskPool

OPENERS = 3
"""Threads that open partitions. More would only wait for one another, since most of the work is Python."""
OPENED_AT_ONCE = 8  # by one thread, before it reports to the loop

Opening = Callable[[], HostedPartition]
"""Opens one partition. Blocks, on any thread."""


async def open_many(openings: Sequence[Opening], disk: DiskPool) -> list[HostedPartition]:
    """The opened partitions, in the order of `openings`. Raises whatever one of them raises."""
    parts = [openings[at : at + OPENED_AT_ONCE] for at in range(0, len(openings), OPENED_AT_ONCE)]
    opened: dict[int, list[HostedPartition]] = {}
    waiting = iter(enumerate(parts))
    await asyncio.gather(*(open_parts(waiting, opened, disk) for _ in range(OPENERS)))
    return [partition for number in range(len(parts)) for partition in opened[number]]


async def open_parts(
    waiting: Iterator[tuple[int, Sequence[Opening]]], opened: dict[int, list[HostedPartition]], disk: DiskPool
) -> None:
    """Open those that no other task has taken from the iterator."""
    for number, openings in waiting:
        opened[number] = await disk.run(open_in_turn, openings)


def open_in_turn(openings: Sequence[Opening]) -> list[HostedPartition]:
    """Open them one after another. Blocks."""
    return [open_one() for open_one in openings]
