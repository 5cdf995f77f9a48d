"""Opens many partitions, several at a time, since they wait for the disk and not for one another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.storage.disk_pool import DiskPool

OPENERS = 3
"""Threads that open partitions. More would only wait for one another, since most of the work is Python."""
OPENED_AT_ONCE = 8  # by one thread, before it reports to the loop

Opening = Callable[[], HostedPartition]
"""Opens one partition. Blocks, on any thread."""


async def open_many(openings: Sequence[Opening], disk: DiskPool) -> list[HostedPartition]:
    """The opened partitions, in the order of `openings`. Raises Shortage if one can't be opened now. Then
    none is left: what a full disk has kept them from copying must not be copied once they are opened again.
    """
    parts = [openings[at : at + OPENED_AT_ONCE] for at in range(0, len(openings), OPENED_AT_ONCE)]
    opened: list[list[HostedPartition]] = [[] for _ in parts]
    waiting = zip(parts, opened, strict=True)
    outcomes = await asyncio.gather(
        *(open_parts(waiting, disk) for _ in range(OPENERS)), return_exceptions=True
    )
    partitions = [partition for part in opened for partition in part]
    for outcome in outcomes:
        if outcome is not None:
            await give_up(partitions)
            raise outcome
    return partitions


async def open_parts(
    waiting: Iterator[tuple[Sequence[Opening], list[HostedPartition]]], disk: DiskPool
) -> None:
    """Open those that no other task has taken from the iterator, until one can't be opened."""
    for openings, opened in waiting:
        try:
            await disk.run(open_in_turn, openings, opened)
        except BaseException:
            deque(waiting, maxlen=0)  # nobody goes on
            raise


def open_in_turn(openings: Sequence[Opening], opened: list[HostedPartition]) -> None:
    """Open them one after another. Blocks."""
    for open_one in openings:
        opened.append(open_one())


async def give_up(partitions: Iterable[HostedPartition]) -> None:
    """Wait until nothing uses the files of these partitions, and nothing ever will."""
    for partition in partitions:
        partition.abandon(NotLed(f"{partition.name} is not led yet: ask who leads it, and try again"))
        await partition.let_go()
