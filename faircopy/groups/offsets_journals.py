"""Groups on journals: which journal has a group's offsets and members, and how they get there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from faircopy.copier.fold import Standing
from faircopy.errors import FaircopyError
from faircopy.groups.group_metadata import GroupMetadata, encode_group
from faircopy.groups.group_offsets import (
    GroupOffsets,
    KeptGroup,
    UnderWay,
    encode_offsets,
)
from faircopy.groups.offsets import OffsetChanges, Offsets, TopicIds
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.loop.waiting import tell
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import accept, ensure_whole
from faircopy.partition.participant import Done
from faircopy.partition.partition import Appended, Partition
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.expiry import Expired
from faircopy.storage.state_store import StateStore

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"  # its name for people, as in Kafka; no topic can have this name
OFFSETS_DIRECTORY = OFFSETS_TOPIC

AppendDraft = Callable[[Partition, bytes, None, int, TransactionId, Appended], None]

SETTLE_MS = 10_000
SETTLE_POLL_SECONDS = 0.001


class TopicGone(FaircopyError):
    """A topic was deleted while its offsets were being committed. Nothing was committed."""


class OffsetsPartition(Partition):
    """One journal of group offsets, and the table that is built from it."""

    def __init__(
        self, number: int, journal: Journal, table: GroupOffsets, store: StateStore, disk: DiskPool
    ) -> None:
        name, partition_id = PartitionName(OFFSETS_TOPIC, number), TopicIdPartition(OFFSETS_TOPIC_ID, number)
        super().__init__(name, partition_id, journal, table, store, disk, has_batches=False)
        self.table = table

    def open(self) -> None:
        """Open it, in the steps of `partition.opening`. Blocks. Raises DamagedJournal, StorageFailure."""
        checkpoint = self.load()
        self.table.load()
        opening = self.journal.open(checkpoint.position, checkpoint.journal_epochs)
        for recovered in opening.entries():
            try:
                effect = self.fold_found(recovered)
                if effect is not None:
                    self.table.push(effect, recovered.payload)
            except Exception as error:
                opening.refuse(recovered.entry, error)
        opening.judge_end()
        ensure_whole(self, opening)
        accept(self, opening)
        for txid, transaction in self.state.undecided.items():
            if transaction.drafts:
                self.table.recover_open(txid, transaction.head)

    def is_settling(self, group: str) -> bool:
        """Whether a transaction with offsets of this group is decided, but not yet in the table."""
        standings = (self.standing(transaction) for transaction in self.table.pending(group))
        return any(standing not in (None, Standing.OPEN) for standing in standings)

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        super().discard(transaction, fence_epoch, finished, done)
        self.table.note_end(transaction)


class OffsetsJournals:
    """The journals of group offsets with these numbers. `number_of` gives the number of a group's journal."""

    def __init__(
        self,
        numbers: Iterable[int],
        number_of: Callable[[str], int],
        directory: Path,
        store: StateStore,
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
        clock: Clock,
        topic_ids: TopicIds,
        leader_epoch: int,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._topic_ids = topic_ids
        self._number_of = number_of
        self._is_replicated = options.is_replicated
        self._partitions: dict[int, OffsetsPartition] = {}
        for number in numbers:
            identity = TopicIdPartition(OFFSETS_TOPIC_ID, number).identity
            path = directory / OFFSETS_DIRECTORY / str(number)
            journal = Journal(path, identity, disk, loop, options, leader_epoch)
            table = GroupOffsets(identity, journal, store)
            self._partitions[number] = OffsetsPartition(number, journal, table, store, disk)
        self.partitions = list(self._partitions.values())

    def partition_of(self, group: str) -> OffsetsPartition:
        """The partition that keeps a group's offsets."""
        return self._partitions[self._number_of(group)]

    def partition(self, number: int) -> OffsetsPartition:
        """The partition with this number."""
        return self._partitions[number]

    # -- the store of the group coordinator ------------------------------------------------------------------

    def fetch(self, group: str) -> Offsets:
        """The committed offsets of a group, for topics that exist."""
        committed = self.partition_of(group).table.committed(group)
        return {place: offset for place, offset in committed.items() if self._exists(place)}

    def unstable(self, group: str) -> set[TopicIdPartition]:
        """Partitions with offsets of this group in an open transaction."""
        return set(filter(self._exists, self.partition_of(group).table.unstable(group)))

    def _exists(self, place: TopicIdPartition) -> bool:
        return self._topic_ids.name_of(place) is not None

    async def settle(self, group: str) -> bool:
        """Wait, for a bounded time, until `fetch` includes everything committed for a group by now (P8).
        False if it does not yet, or never will because the partition has stopped.
        """
        partition = self.partition_of(group)
        deadline_ms = self._clock.monotonic_ms() + SETTLE_MS
        while partition.is_settling(group) and self._clock.monotonic_ms() < deadline_ms:
            if partition.failure is not None:
                break
            await asyncio.sleep(SETTLE_POLL_SECONDS)
        return not partition.is_settling(group)

    def groups(self) -> Iterable[str]:
        """All groups with committed offsets."""
        return [group for partition in self.partitions for group in partition.table.groups()]

    async def commit(self, group: str, offsets: Offsets) -> None:
        """Commit offsets of a group; durable when done. Raises JournalFull, TopicGone."""
        self._ensure_exist(offsets)
        await self._append(group, offsets)

    def store_group(self, group: str, metadata: GroupMetadata) -> asyncio.Future[None]:
        """Store who is in a group; durable when done. Raises JournalFull."""
        payload = encode_group(group, metadata._replace(changed_ms=self._clock.steady_ms()))
        return self._append_payload(group, payload, UnderWay())

    def is_replicable(self, group: str) -> bool:
        """Whether other replicas, if there are any, could get what is stored for a group now."""
        if self._is_replicated:
            try:
                self.partition_of(group).ensure_replicable()
            except FaircopyError:
                return False
        return True

    async def replicated(self, group: str) -> None:
        """Wait until other replicas, if there are any, have what was stored for a group by now."""
        if self._is_replicated:
            await self.partition_of(group).journal.durable()

    def kept_group(self, group: str) -> KeptGroup | None:
        """What was last stored for a group; None if that was deleted."""
        return self.partition_of(group).table.kept().get(group)

    def is_being_deleted(self, group: str) -> bool:
        """Whether a deletion is on its way to disk: whoever joins now joins a new group."""
        return self.partition_of(group).table.is_being_deleted(group)

    def kept_groups(self) -> Iterable[tuple[str, KeptGroup]]:
        """All stored groups."""
        return [item for partition in self.partitions for item in partition.table.kept().items()]

    async def delete_group(self, group: str) -> None:
        """Forget a group and its offsets; durable when done. Raises JournalFull."""
        await self._withdraw(group, self.partition_of(group).table.places(group), deletes_group=True)

    async def delete(self, group: str, partitions: AbstractSet[TopicIdPartition] | None) -> None:
        """Delete a group's offsets: all (None), or those of some partitions. Durable when done."""
        places = self.partition_of(group).table.places(group)
        await self._withdraw(group, [place for place in places if partitions is None or place in partitions])

    async def _withdraw(
        self, group: str, places: Iterable[TopicIdPartition], *, deletes_group: bool = False
    ) -> None:
        await self._append(group, dict.fromkeys(places), deletes_group=deletes_group)

    # -- forgetting ------------------------------------------------------------------------------------------

    async def forget_deleted(self) -> None:
        """Delete the offsets of deleted topics. Durable when done."""
        for group in self.groups():
            await asyncio.sleep(0)
            committed = self.partition_of(group).table.committed(group)
            await self._withdraw(group, [place for place in committed if not self._exists(place)])

    async def expire(self, retention_ms: int, is_active: Callable[[str], bool]) -> Expired:
        """Delete offsets that are older than `retention_ms`, and whose group had no members for as long
        (KIP-211). A group is deleted with its last offset. `is_active(group)` says whether it has members
        now, or is about to. Returns how many groups have lost all of their offsets.
        """
        oldest_ms = self._clock.steady_ms() - retention_ms
        kept_groups = (group for group, _ in self.kept_groups())
        groups = dict.fromkeys((*kept_groups, *self.groups()))
        over = 0
        for group in groups:
            await asyncio.sleep(0)
            if not is_active(group):
                over += await self._expire_in(group, oldest_ms, retention_ms)
        return Expired(over, len(groups))

    async def _expire_in(self, group: str, oldest_ms: int, retention_ms: int) -> bool:
        """Delete a group's offsets from before `oldest_ms`. Whether it has lost all of them."""
        kept, table = self.kept_group(group), self.partition_of(group).table
        if table.is_changing(group) or (kept is not None and kept.changed_ms >= oldest_ms):
            return False
        committed = table.committed(group)
        expired = [place for place, offset in committed.items() if offset.committed_ms < oldest_ms]
        known, is_over = len(committed), len(expired) == len(committed)
        await self._withdraw(group, expired, deletes_group=is_over and kept is not None)
        if expired or is_over:
            log.info(
                "group %r: %d of %d offsets are deleted%s (offsets.retention.ms=%d)",
                group, len(expired), known, ", with the group" if is_over else "", retention_ms,
            )  # fmt: skip
        return is_over

    # -- transactions ----------------------------------------------------------------------------------------

    def commit_draft(
        self,
        group: str,
        offsets: Offsets,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        append_draft: AppendDraft,
    ) -> asyncio.Future[None]:
        """Put offsets into the producer's open transaction. The future is done when they are in the journal.

        `append_draft` is `TransactionCoordinator.append_draft`; what it raises is raised.

        Raises NoOpenTransaction, JournalFull, TopicGone.
        """
        self._ensure_exist(offsets)
        partition = self.partition_of(group)
        partition.ensure_replicable()
        transaction = partition.open_transaction_of(transactional_id, producer_id, producer_epoch)
        payload = encode_offsets(group, offsets)
        done: asyncio.Future[None] = self._loop.create_future()
        append_draft(partition, payload, None, len(offsets), transaction, lambda _base_offset: tell(done))
        partition.table.note_draft(transaction, payload)
        return done

    def _ensure_exist(self, offsets: Offsets) -> None:
        if not all(map(self._exists, offsets)):
            raise TopicGone(
                "a topic was deleted while its offsets were being committed: commit those of the others"
            )

    async def _append(self, group: str, changes: OffsetChanges, *, deletes_group: bool = False) -> None:
        if changes or deletes_group:
            payload = encode_offsets(group, changes, deletes_group=deletes_group)
            await self._append_payload(group, payload, UnderWay(changes, deletes_group))

    def _append_payload(self, group: str, payload: bytes, change: UnderWay) -> asyncio.Future[None]:
        partition = self.partition_of(group)
        partition.ensure_replicable()
        done: asyncio.Future[None] = self._loop.create_future()
        records = max(len(change.offsets) + change.deletes_group, 1)
        partition.append_plain(payload, None, records, lambda _base_offset: tell(done))
        partition.table.note_plain(group, change)
        return done
