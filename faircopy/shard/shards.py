"""All shards of this process, and which of them answers for what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.offsets_journals import OffsetsJournals, OffsetsPartition
from faircopy.hosting.catalog import Catalog
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.partition.participant import Participant
from faircopy.partition.partition import Partition, participant
from faircopy.shard.leader_epochs import LeaderEpochs
from faircopy.shard.placement import Placement
from faircopy.shard.shard import Resources, Shard
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.settlement import settle
from faircopy.transactions.transaction import Transaction


class Shards:
    """The shards of a data directory, each led by this process."""

    def __init__(self, placement: Placement, epochs: LeaderEpochs, resources: Resources) -> None:
        self._placement = placement
        self._catalog: Catalog = resources.catalog
        self._shards = [
            Shard(number, epochs.of_shard(number), placement, self.participant, resources)
            for number in range(placement.shards)
        ]

    def __iter__(self) -> Iterator[Shard]:
        """All shards, in order."""
        return iter(self._shards)

    # -- who answers for what ------------------------------------------------------------------------------------

    def coordinator_of(self, transactional_id: str) -> TransactionCoordinator:
        """The coordinator of a transactional id's transactions."""
        return self._shards[self._placement.shard_of_transactions(transactional_id)].coordinator

    def groups_of(self, group: str) -> GroupCoordinator:
        """The coordinator of a consumer group."""
        return self._shards[self._placement.shard_of_group(group)].groups

    def offsets_of(self, group: str) -> OffsetsJournals:
        """Where the offsets of a consumer group are."""
        return self._shards[self._placement.shard_of_group(group)].offsets

    def participant(self, partition: TopicIdPartition) -> Participant:
        """What a coordinator is to talk to, in whatever shard it is."""
        if partition.topic_id == OFFSETS_TOPIC_ID:
            shard = self._shards[self._placement.shard_of(partition)]
            return participant(shard.offsets.partition(partition.partition))
        return participant(self._catalog.find_by_id(partition))

    # -- all of them ---------------------------------------------------------------------------------------------

    def coordinators(self) -> list[TransactionCoordinator]:
        """The coordinators of transactions."""
        return [shard.coordinator for shard in self._shards]

    def metadata_journals(self) -> list[MetadataJournal]:
        """All metadata journals."""
        return [home for shard in self._shards for home in shard.journals.values()]

    def offsets_partitions(self) -> list[OffsetsPartition]:
        """All partitions of group offsets."""
        return [partition for shard in self._shards for partition in shard.offsets.partitions]

    def partitions(self) -> list[Partition]:
        """All partitions, of group offsets and of topics."""
        return [*self.offsets_partitions(), *self._catalog.partitions()]

    # -- their life ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read what all journals hold: those of all shards side by side, then those of topics. Raises DamagedJournal,
        NoSpace.
        """
        await asyncio.gather(*(shard.open() for shard in self._shards))
        await self._catalog.open_all()

    def settle(self, *, is_clean: bool, lost_power: bool) -> None:
        """Once all is read: finish what was decided, and go on with the rest."""
        settle(self.coordinators(), self.partitions(), is_clean=is_clean, lost_power=lost_power)

    def restore_groups(self) -> None:
        """Take up the groups that have members: from here on the time of their sessions runs."""
        for shard in self._shards:
            shard.groups.restore()

    def close_groups(self) -> None:
        """Let nobody wait for a group any more."""
        for shard in self._shards:
            shard.groups.close()

    def abort_expired(self) -> list[Transaction]:
        """Abort the transactions past their timeout, and fence their producers."""
        return [transaction for shard in self._shards for transaction in shard.coordinator.abort_expired()]

    def forget_idle(self) -> None:
        """Forget transactional ids that nobody has used for long."""
        for shard in self._shards:
            shard.coordinator.forget_idle()

    async def forget_offsets_of_deleted(self) -> None:
        """Take away the offsets of topics that were deleted. Durable when done. Raises JournalFull."""
        for shard in self._shards:
            await shard.offsets.forget_deleted()

    async def expire_offsets(self) -> None:
        """Take away the offsets that nobody has used for long. Raises JournalFull."""
        for shard in self._shards:
            await shard.offsets_retention.apply()
