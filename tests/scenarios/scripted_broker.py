"""One process of a broker, as scripts have it: a coordinator, and partitions over journals in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from faircopy.copier.fold import CopyBatch, CopyTransaction, Effect
from faircopy.errors import FaircopyError
from faircopy.journal.draft_space import DraftSpace
from faircopy.journal.entry import Kind
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.reading import Recovered
from faircopy.partition.name import PartitionName
from faircopy.partition.participant import Participant
from faircopy.partition.partition import Partition, participant
from faircopy.storage.system import Buffer
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.metadata_entry import decode
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.settlement import settle
from faircopy.transactions.survival import Survival
from faircopy.transactions.transaction import NewEntry
from tests.scenarios.labels import Labels
from tests.scenarios.scripted_journal import ScriptedJournal
from tests.scenarios.words import participant_of

METADATA = "J"
PARTITIONS = ("t-0", "t-1", "t-2")
MAX_TIMEOUT_MS = 900_000
DRAFTS_MAX_BYTES = 500
EXPIRATION_MS = 3_600_000


class ScriptedClock:
    """Time passes when a script says so."""

    def __init__(self) -> None:
        self.now_ms = 0

    def steady_ms(self) -> int:
        """The time."""
        return self.now_ms


class ScriptedLog:
    """Stands in for the copier and its log. Tells what becomes visible, and outlives processes."""

    waits_for_space = False

    def __init__(self, tell: Callable[[str], None], labels: Labels) -> None:
        self._tell = tell
        self._labels = labels
        self._end = 0

    def push(self, effect: Effect, _payload: Buffer | None) -> None:
        """Make it visible, if it is not yet."""
        match effect:
            case CopyBatch():
                self._show("plain", effect.base_offset, effect.entry.records)
            case CopyTransaction():
                self._show(self._labels.of(effect.transaction), effect.base_offset, effect.records)

    def _show(self, what: str, base_offset: int, records: int) -> None:
        if base_offset >= self._end:
            self._end = base_offset + records
            self._tell(f"log {base_offset}..{self._end - 1}: {what}")


class ScriptedBroker:
    """Folds what the journals hold. Call `settle` next. `acks_durably` has the partitions whose drafts are
    acked once they are fsynced; if it has all, the broker says so, else their topics do.
    """

    def __init__(
        self,
        journals: Mapping[str, ScriptedJournal],
        logs: Mapping[str, ScriptedLog],
        clock: ScriptedClock,
        producer_ids: Callable[[], int],
        acks_durably: Collection[str],
    ) -> None:
        self._producer_ids = producer_ids
        self._partitions: dict[TopicIdPartition, Partition] = {}
        self.home = MetadataJournal(0, cast(Any, journals[METADATA]), cast(Any, None), cast(Any, None))
        self._draft_space = DraftSpace(DRAFTS_MAX_BYTES)
        for name, log in logs.items():
            self._open(name, journals[name], log)
            self.partition(name).acks_drafts_durably = name in acks_durably
        epoch = journals[METADATA].leader_epoch
        self.coordinator = TransactionCoordinator(
            {0: self.home},
            lambda _transactional_id: 0,
            self.find_participant,
            self._next_producer_id,
            epoch,
            Numbers(epoch),
            cast(Any, clock),
            asyncio.get_event_loop(),
            CoordinatorOptions(MAX_TIMEOUT_MS, EXPIRATION_MS, is_durable=set(acks_durably) == set(logs)),
            ProducerConnections(),
        )
        for entry, payload in journals[METADATA].entries:
            self.home.table.fold(
                NewEntry(Kind(entry.kind), entry.transaction, decode(payload)), entry.position
            )

    def _open(self, name: str, journal: ScriptedJournal, log: ScriptedLog) -> None:
        partition_id = participant_of(name)
        journal.draft_space = self._draft_space
        partition = self._partitions[partition_id] = Partition(
            PartitionName("t", partition_id.partition), partition_id, cast(Any, journal), cast(Any, log),
            cast(Any, None), cast(Any, None),
        )  # fmt: skip
        for entry, payload in journal.entries:
            effect = partition.fold_found(Recovered(entry, memoryview(payload)))
            if effect is not None:
                log.push(effect, None)
        partition.count_drafts()

    async def _next_producer_id(self) -> int:
        return self._producer_ids()

    def settle(self, survival: Survival) -> None:
        """What a start does once all journals are folded."""
        settle([self.coordinator], self._partitions.values(), survival)

    def find_participant(self, partition_id: TopicIdPartition) -> Participant:
        """The participant that the coordinator talks to."""
        return participant(self._partitions.get(partition_id))

    def partition(self, word: str) -> Partition:
        """A partition that clients write to. Raises what keeps it from that."""
        partition = self._partitions.get(participant_of(word))
        if partition is None:
            raise FaircopyError(f"there is no partition {word}")
        partition.ensure_sound()
        return partition

    def delete(self, word: str) -> None:
        """The topic of a partition is deleted."""
        del self._partitions[participant_of(word)]

    async def look_at_time(self) -> None:
        """What a broker does from time to time."""
        self.coordinator.abort_expired()
        forgotten = await self.coordinator.forget_idle()
        for partition in self._partitions.values():
            partition.forget_producers(forgotten)
