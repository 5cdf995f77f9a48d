"""Read your commits (P8): an end offset given to a client includes everything acknowledged before."""

from __future__ import annotations

import asyncio

from faircopy.errors import FaircopyError
from faircopy.partition.hosted import HostedPartition
from faircopy.storage.clock import Clock

CATCH_UP_MS = 10_000
CATCH_UP_POLL_SECONDS = 0.001


class NotCaughtUp(FaircopyError):
    """Acknowledged messages are not visible yet: ask again."""


class WaitsForSpace(NotCaughtUp):
    """Acknowledged messages can't become visible until the disk has space, or missing replicas are back."""


async def catch_up(partition: HostedPartition, clock: Clock) -> None:
    """Wait, for a bounded time, until everything acknowledged by now is visible.

    Raises NotCaughtUp, or whatever stopped the partition.
    """
    state, log = partition.state, partition.log
    deadline_ms = clock.monotonic_ms() + CATCH_UP_MS
    prepared = set(state.prepared)
    while prepared & state.prepared:
        if partition.journal.is_stuck:
            raise waits_for_space(partition)
        await _pause(partition, clock, deadline_ms)
    target = state.next_offset
    while log.end_offset < target:
        if partition.journal.is_stuck:
            if partition.is_applying:
                raise waits_for_space(partition)
            # What is beyond this is not acknowledged either.
            target = min(target, partition.copier.pushed_offset)
        await _pause(partition, clock, deadline_ms)
    if partition.failure is not None:
        raise partition.failure  # another leader may have acknowledged more


async def until_visible(partition: HostedPartition, end_offset: int, clock: Clock) -> None:
    """Wait, for a bounded time, until everything below an offset is visible. Raises as `catch_up` does."""
    deadline_ms = clock.monotonic_ms() + CATCH_UP_MS
    while partition.log.end_offset < end_offset:
        await _pause(partition, clock, deadline_ms)


async def _pause(partition: HostedPartition, clock: Clock, deadline_ms: float) -> None:
    if partition.failure is not None:
        raise partition.failure
    if partition.sink.waits_for_space:
        raise waits_for_space(partition)
    if clock.monotonic_ms() > deadline_ms:
        raise NotCaughtUp(f"{partition.name} has acknowledged messages that are not visible yet: ask again")
    await asyncio.sleep(CATCH_UP_POLL_SECONDS)


def waits_for_space(partition: HostedPartition) -> WaitsForSpace:
    """The error for a partition on a full disk, or without other replicas, where waiting is of no use."""
    lacking = partition.journal.space.elsewhere
    why = "the disk is full: free some space, and ask again" if lacking is None else f"{lacking}: ask again"
    return WaitsForSpace(
        f"{partition.name} has acknowledged messages that can't be copied into its log, since {why}"
    )
