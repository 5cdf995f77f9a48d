"""One shard: a set of journals with one leader.

A shard has some metadata journals with the coordinator of their transactions, some offsets partitions with
the coordinator of their groups, and partitions of topics. It is led and recovered as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.catalogue.producer_ids import ProducerIds
from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.members import GroupLimits, HeldMemory
from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.groups.offsets_retention import OffsetsRetention
from faircopy.hosting.administration import TopicAdministration
from faircopy.hosting.checkpoints import LAST_AT_ONCE, run_some_at_a_time
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.stopping import Stopping
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.journal.shipping import NOT_SHIPPED, Shipping
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import Participants
from faircopy.partition.partition import Partition
from faircopy.settings.table import Settings
from faircopy.shard.placement import Placement
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.metadata_journal import MetadataJournal, journal_identity
from faircopy.transactions.numbers import Numbers

METADATA_DIRECTORY = "_metadata"


class Resources(NamedTuple):
    """What all shards of a process use. `journals` is the directory of all journals."""

    settings: Settings
    journals: Path
    store: StateStore
    disk: DiskPool
    loop: asyncio.AbstractEventLoop
    clock: Clock
    journal_options: JournalOptions
    hosted: HostedTopics
    administration: TopicAdministration
    producer_ids: ProducerIds
    ranks: Numbers
    connections: ProducerConnections
    held_by_groups: HeldMemory
    fresh_member_id: Callable[[], str]
    coordinator_type: type[TransactionCoordinator]
    stopping: Stopping
    shipping: Shipping = NOT_SHIPPED


class Shard:
    """A shard, as the leader of this `epoch` sees it."""

    def __init__(
        self,
        number: int,
        epoch: int,
        placement: Placement,
        find_participant: Participants,
        resources: Resources,
    ) -> None:
        self.number = number
        self.epoch = epoch
        self.is_led = True
        self._is_closed = False
        self._placement = placement
        self._resources = resources
        self.journals = {
            number: self._metadata_journal(number) for number in placement.metadata_journals_in(self.number)
        }
        self.offsets = self._offsets_journals()
        self.coordinator = self._transaction_coordinator(find_participant)
        self.groups = self._group_coordinator()
        self.offsets_retention = OffsetsRetention(self.offsets, self.groups.is_active, resources.settings)

    # -- its parts -------------------------------------------------------------------------------------------

    def _metadata_journal(self, number: int) -> MetadataJournal:
        using = self._resources
        path = using.journals / METADATA_DIRECTORY / str(number)
        journal = Journal(
            path, journal_identity(number), using.disk, using.loop, using.journal_options, self.epoch
        )
        return MetadataJournal(number, journal, using.store, using.disk)

    def _offsets_journals(self) -> OffsetsJournals:
        using, placement = self._resources, self._placement
        return OffsetsJournals(
            placement.offsets_partitions_in(self.number), placement.offsets_partition_of, using.journals,
            using.store, using.disk, using.loop, using.journal_options, using.clock, using.hosted,
            self.epoch,
        )  # fmt: skip

    def _transaction_coordinator(self, find_participant: Participants) -> TransactionCoordinator:
        using, settings = self._resources, self._resources.settings
        return using.coordinator_type(
            self.journals, self._placement.metadata_journal_of, find_participant, using.producer_ids.next,
            self.epoch, using.ranks, using.clock, using.loop,
            CoordinatorOptions(
                settings.transaction_max_timeout_ms,
                settings.transactional_id_expiration_ms,
                settings.acks_drafts_durably(settings.transactional_ack),
            ),
            using.connections,
        )  # fmt: skip

    def _group_coordinator(self) -> GroupCoordinator:
        using, settings = self._resources, self._resources.settings
        limits = GroupLimits(
            settings.group_initial_rebalance_delay_ms,
            settings.group_min_session_timeout_ms,
            settings.group_max_session_timeout_ms,
            settings.group_max_size,
            settings.group_max_bytes,
            settings.groups_max_bytes,
        )
        return GroupCoordinator(
            limits, using.held_by_groups, self.offsets, using.loop.call_later,
            lambda: int(using.clock.monotonic_ms()), using.fresh_member_id, using.clock.steady_ms,
            using.hosted,
        )  # fmt: skip

    def partitions(self) -> Iterator[HostedPartition]:
        """Its partitions of topics."""
        for partition in self._resources.hosted.partitions():
            if self._placement.shard_of(partition.id) == self.number:
                yield partition

    # -- its life --------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Stop leading, in order: what was accepted becomes durable and visible; what is open can go on.

        On a full disk this waits for space. If it is interrupted, call it again: it does the rest. Raises
        StorageFailure.
        """
        if self._is_closed:
            return
        self.is_led = False
        self.groups.close()
        partitions = [*self.offsets.partitions, *self.partitions()]
        for partition in partitions:
            partition.stop_serving()
        await self.coordinator.finish()
        self.coordinator.depose()
        await asyncio.gather(*(home.retire() for home in self.journals.values()))
        await run_some_at_a_time(partitions, LAST_AT_ONCE, Partition.retire)
        self._is_closed = True

    async def open(self) -> None:
        """Recover its own journals; the hosted topics open theirs. Raises DamagedJournal, NoSpace."""
        disk, settings = self._resources.disk, self._resources.settings
        homes = [home.journal for home in self.journals.values()]
        offsets = [partition.journal for partition in self.offsets.partitions]
        await self._resources.shipping.share(homes + offsets)
        await asyncio.gather(*(disk.run(journal.open) for journal in self.journals.values()))
        await asyncio.gather(*(disk.run(partition.open) for partition in self.offsets.partitions))
        for partition in self.offsets.partitions:
            partition.acks_drafts_durably = settings.acks_drafts_durably(settings.transactional_ack)
            partition.count_drafts()
