"""Group offsets on journals: which journal a group's offsets are in, and how they get there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from faircopy.broker.groups.offsets import CommittedOffset
from faircopy.copier.group_offsets import GroupOffset, GroupOffsets, OffsetChange, Place, encode_offsets
from faircopy.copier.partition import Done, Partition, PartitionName
from faircopy.journal.entry import TransactionId
from faircopy.journal.journal import Journal, JournalOptions
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk
from faircopy.storage.state_store import StateStore
from faircopy.wire.murmur2 import partition_for

OFFSETS_TOPIC = "__consumer_offsets"  # the name Kafka gives it; here it is a name only, and no topic

OffsetRow = tuple[str, int, int, int, str]
"""Topic, partition, offset, leader epoch, metadata."""


class OffsetsPartition(Partition):
    """One journal of group offsets."""

    table: GroupOffsets

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
            identity = b"O" + bytes(15) + number.to_bytes(4, "big")
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

    def commit_draft(
        self, group: str, rows: Iterable[OffsetRow], producer_id: int, producer_epoch: int
    ) -> asyncio.Future[None]:
        """Put offsets into the producer's open transaction; the future is done when they stand in the journal.

        Raises NoOpenTransaction, JournalFull.
        """
        partition = self.partition_of(group)
        partition.ensure_sound()
        transaction = partition.open_transaction_of(producer_id, producer_epoch)
        changes = self._changes(rows)
        payload = encode_offsets(group, changes)
        done: asyncio.Future[None] = self._loop.create_future()
        partition.append_draft(payload, None, len(changes), transaction, lambda: done.set_result(None))
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
