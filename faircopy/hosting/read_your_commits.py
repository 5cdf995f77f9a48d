"""Read your commits (P8): who asks for the end of a partition is told one that includes all that was acknowledged."""

from __future__ import annotations

import asyncio

from faircopy.errors import FaircopyError
from faircopy.partition.hosted import HostedPartition
from faircopy.storage.clock import Clock

CATCH_UP_MS = 10_000
CATCH_UP_POLL_SECONDS = 0.001


class NotCaughtUp(FaircopyError):
    """Something that was acknowledged is not visible yet: ask again."""


class WaitsForSpace(NotCaughtUp):
    """Something that was acknowledged can't become visible before the disk has space."""


async def catch_up(partition: HostedPartition, clock: Clock) -> None:
    """Wait until all that was acknowledged by now is visible, for a bounded time.

    Raises NotCaughtUp, and what stopped the partition.
    """
    state, log = partition.state, partition.log
    deadline_ms = clock.monotonic_ms() + CATCH_UP_MS
    prepared = set(state.prepared)
    while prepared & state.prepared:
        if partition.journal.waits_for_space:
            raise waits_for_space(partition)
        await _pause(partition, clock, deadline_ms)
    target = state.next_offset
    while log.end_offset < target:
        if partition.journal.waits_for_space:
            if partition.is_applying:
                raise waits_for_space(partition)
            # What else is not written is not acknowledged either.
            target = min(target, partition.copier.pushed_offset)
        await _pause(partition, clock, deadline_ms)
    if partition.failure is not None:
        raise partition.failure  # another leader may have acknowledged more


async def _pause(partition: HostedPartition, clock: Clock, deadline_ms: float) -> None:
    if partition.failure is not None:
        raise partition.failure
    if partition.sink.waits_for_space:
        raise waits_for_space(partition)
    if clock.monotonic_ms() > deadline_ms:
        raise NotCaughtUp(f"{partition.name} has acknowledged messages that are not visible yet: ask again")
    await asyncio.sleep(CATCH_UP_POLL_SECONDS)


def waits_for_space(partition: HostedPartition) -> WaitsForSpace:
    """The error for a partition on a full disk: there is no use in waiting."""
    return WaitsForSpace(
        f"{partition.name} has acknowledged messages that can't be copied into its log, as the disk is full: free "
        f"some space, and ask again"
    )
