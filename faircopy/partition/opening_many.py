"""Opens many partitions, several at a time, since they wait for the disk and not for one another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from faircopy.partition.hosted import HostedPartition
from faircopy.partition.opening import PartitionResources, Unopened, assemble, recover_or_stop
from faircopy.partition.participant import NotLed

OPENERS = 3
"""Threads that open partitions. More would only wait for one another, since most of the work is Python."""
OPENED_AT_ONCE = 8  # by one thread, before it reports to the loop


async def open_many(unopened: Sequence[Unopened], resources: PartitionResources) -> list[HostedPartition]:
    """The opened partitions, in the order of `unopened`. Raises Shortage if one can't be opened now. Then
    none is left: what a full disk has kept them from copying must not be copied once they are opened again.
    """
    partitions = [assemble(each, resources) for each in unopened]
    await resources.shipping.share([partition.journal for partition in partitions])
    waiting = iter([partitions[at : at + OPENED_AT_ONCE] for at in range(0, len(partitions), OPENED_AT_ONCE)])
    outcomes = await asyncio.gather(
        *(open_parts(waiting, resources) for _ in range(OPENERS)), return_exceptions=True
    )
    for outcome in outcomes:
        if outcome is not None:
            await give_up(partitions)
            raise outcome
    return partitions


async def open_parts(waiting: Iterator[Sequence[HostedPartition]], resources: PartitionResources) -> None:
    """Open those that no other task has taken from the iterator, until one can't be opened."""
    for partitions in waiting:
        try:
            await resources.disk.run(open_in_turn, partitions, resources)
        except BaseException:
            deque(waiting, maxlen=0)  # nobody goes on
            raise


def open_in_turn(partitions: Iterable[HostedPartition], resources: PartitionResources) -> None:
    """Open them one after another. Blocks."""
    for partition in partitions:
        recover_or_stop(partition, resources.store)


async def give_up(partitions: Iterable[HostedPartition]) -> None:
    """Wait until nothing uses the files of these partitions, and nothing ever will."""
    for partition in partitions:
        partition.abandon(NotLed(f"{partition.name} is not led yet: ask who leads it, and try again"))
        await partition.let_go()
