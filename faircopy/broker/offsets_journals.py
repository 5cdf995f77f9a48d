"""Group offsets on journals: which journal a group's offsets are in, and how they get there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from pathlib import Path

from faircopy.broker.groups.offsets import CommittedOffset
from faircopy.copier.fold import Standing
from faircopy.copier.group_offsets import GroupOffset, GroupOffsets, OffsetChange, Place, encode_offsets
from faircopy.copier.partition import Appended, Done, Partition, PartitionName
from faircopy.journal.entry import TransactionId
from faircopy.journal.journal import Journal, JournalOptions
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk
from faircopy.storage.state_store import StateStore
from faircopy.wire.murmur2 import partition_for

OFFSETS_TOPIC = "__consumer_offsets"  # the name Kafka gives it; here it is a name only, and no topic

SETTLE_MS = 10_000
SETTLE_POLL_SECONDS = 0.001

OffsetRow = tuple[str, int, int, int, str]
"""Topic, partition, offset, leader epoch, metadata."""


def offsets_identity(number: int) -> bytes:
    """The 20 bytes that name a journal of group offsets in the store and in its segments' headers."""
    return b"O" + bytes(15) + number.to_bytes(4, "big")


class OffsetsPartition(Partition):
    """One journal of group offsets."""

    table: GroupOffsets

    def is_settling(self, group: str) -> bool:
        """Whether a transaction with offsets of this group is decided, and not yet seen in the table."""
        standings = (self.standing(transaction) for transaction in self.table.pending(group))
        return any(standing not in (None, Standing.OPEN) for standing in standings)

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        super().discard(transaction, fence_epoch, finished, done)
        self.table.note_end(transaction)


class OffsetsJournals:
    """All journals of group offsets that this broker leads."""

    def __init__(
        self,
        count: int,
        directory: Path,
        store: StateStore,
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
        clock: Clock,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self.partitions: list[OffsetsPartition] = []
        for number in range(count):
            identity = offsets_identity(number)
            journal = Journal(directory / OFFSETS_TOPIC / str(number), identity, disk, loop, options)
            table = GroupOffsets(identity, journal, store)
            partition = OffsetsPartition(
                PartitionName(OFFSETS_TOPIC, number), identity, journal, table, store, disk, has_batches=False
            )
            partition.table = table
            self.partitions.append(partition)

    def recover(self) -> None:
        """Read the tables, fold the journals. Blocks. Raises DamagedJournal."""
        for partition in self.partitions:
            partition.load()
            partition.table.load()
            partition.recover()
            for txid, transaction in partition.state.transactions.items():
                if transaction.is_undecided and transaction.drafts:
                    partition.table.recover_open(txid, transaction.head)

    def partition_of(self, group: str) -> OffsetsPartition:
        """The partition that keeps a group's offsets."""
        return self.partitions[partition_for(group.encode(), len(self.partitions))]

    # -- the store of the group coordinator ----------------------------------------------------------------------

    def fetch(self, group: str) -> Mapping[Place, CommittedOffset]:
        """What a group has committed."""
        committed = self.partition_of(group).table.committed(group)
        return {place: CommittedOffset(*offset[:3]) for place, offset in committed.items()}

    def unstable(self, group: str) -> set[Place]:
        """Partitions with offsets of this group in an open transaction."""
        return self.partition_of(group).table.unstable(group)

    async def settle(self, group: str) -> None:
        """Wait, for a bounded time, until what was committed for a group by now is what `fetch` tells (P8)."""
        partition = self.partition_of(group)
        deadline_ms = self._clock.monotonic_ms() + SETTLE_MS
        while partition.is_settling(group) and self._clock.monotonic_ms() < deadline_ms:
            await asyncio.sleep(SETTLE_POLL_SECONDS)

    def groups(self) -> Iterable[str]:
        """All groups that have committed offsets."""
        return [group for partition in self.partitions for group in partition.table.groups()]

    async def commit(self, group: str, rows: Iterable[OffsetRow]) -> None:
        """Commit offsets of a group; durable when done. Raises JournalFull."""
        await self._append(group, self._changes(rows))

    async def delete(self, group: str, places: Collection[Place] | None) -> None:
        """Take away a group's offsets: all, or those of some partitions; durable when done."""
        chosen = self.fetch(group) if places is None else places
        await self._append(group, [OffsetChange(topic, partition, None) for topic, partition in chosen])

    # -- forgetting ----------------------------------------------------------------------------------------------

    async def forget_topics_but(self, topics: Container[str]) -> None:
        """Take away the offsets of topics that are not among `topics`: they were deleted. Durable when done."""
        for group in self.groups():
            await asyncio.sleep(0)
            gone = [place for place in self.fetch(group) if place[0] not in topics]
            await self.delete(group, gone)

    async def expire(self, retention_ms: int, last_used_ms: Callable[[str], int]) -> None:
        """Take away offsets that are older than `retention_ms`, and whose group had no members for as long.

        `last_used_ms(group)` is the wall clock's time at which the group was last known to have members (KIP-211).
        """
        oldest_ms = self._clock.wall_ms() - retention_ms
        for group in self.groups():
            await asyncio.sleep(0)
            if last_used_ms(group) < oldest_ms:
                table = self.partition_of(group).table
                committed = table.committed(group).items()
                expired = [place for place, offset in committed if offset.committed_ms < oldest_ms]
                await self.delete(group, expired)

    # -- transactions --------------------------------------------------------------------------------------------

    def commit_draft(
        self,
        group: str,
        rows: Iterable[OffsetRow],
        producer_id: int,
        producer_epoch: int,
        once_known: Callable[[TransactionId, Appended], Appended],
    ) -> asyncio.Future[None]:
        """Put offsets into the producer's open transaction; the future is done when they stand in the journal.

        `once_known` is `TransactionCoordinator.once_known`.

        Raises NoOpenTransaction, JournalFull.
        """
        partition = self.partition_of(group)
        partition.ensure_sound()
        transaction = partition.open_transaction_of(producer_id, producer_epoch)
        changes = self._changes(rows)
        payload = encode_offsets(group, changes)
        done: asyncio.Future[None] = self._loop.create_future()
        written = once_known(transaction, lambda _base_offset: done.set_result(None))
        partition.append_draft(payload, None, len(changes), transaction, written)
        partition.table.note_draft(transaction, payload)
        return done

    def _changes(self, rows: Iterable[OffsetRow]) -> list[OffsetChange]:
        now_ms = self._clock.wall_ms()
        return [
            OffsetChange(topic, partition, GroupOffset(offset, leader_epoch, metadata, now_ms))
            for topic, partition, offset, leader_epoch, metadata in rows
        ]

    async def _append(self, group: str, changes: list[OffsetChange]) -> None:
        if not changes:
            return
        partition = self.partition_of(group)
        partition.ensure_sound()
        done: asyncio.Future[None] = self._loop.create_future()
        payload = encode_offsets(group, changes)
        partition.append_plain(payload, None, len(changes), lambda _base_offset: done.set_result(None))
        await done
