"""State is the fold of the journals and nothing else: folded anew, they give what the broker has in memory.

This is checked right before a broker dies, so with transactions open, prepared and held. A journal with
entries that are appended but not yet written is skipped: its tail dies with the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, cast

from faircopy.broker.broker import Broker
from faircopy.catalogue.journal import CATALOGUE_IDENTITY, CatalogueJournal
from faircopy.copier.checkpoint import decode_checkpoint, restore
from faircopy.copier.fold import CopyTransaction, PartitionState
from faircopy.copier.producer_table import ProducerTable
from faircopy.copier.spans import Spans
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.groups.offsets_journals import OffsetsPartition
from faircopy.journal.checkpoint import decode_journal_checkpoint
from faircopy.journal.journal import Journal
from faircopy.journal.opening import epochs_with
from faircopy.journal.reading import Recovered
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.partition import Partition
from faircopy.storage.disk_pool import DiskPool
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.producers import Producers
from faircopy.transactions.transaction import Transaction
from faircopy.verify.journal_files import JournalFiles, open_journal

NOT_FOLDED = {
    "changed",  # what the next checkpoint has to store
    "changed_producers",
    "changed_transactions",
    "changed_groups",
    "__weakref__",
    "gone",  # what partitions are yet to forget, and a start settles
}


def differences(broker: Broker) -> Iterator[str]:
    """The differences between memory and the journals. Changes nothing."""
    yield from compare_catalogue(broker)
    for home in broker.shards.metadata_journals():
        if is_written(home.journal):
            yield from compare(f"transactions of journal {home.number}", home.table, table_of(broker, home))
            yield from compare_epochs(broker, home.journal, home.identity)
    for partition in broker.shards.partitions():
        if partition.failure is None and is_written(partition.journal):
            files = files_of(partition.journal, partition.identity)
            anew = FoldedAnew(broker, partition, files)
            yield from compare(f"state of {partition.name}", partition.state, anew.state)
            yield from anew.faults()
            yield from compare_epochs(broker, partition.journal, partition.identity)
            if isinstance(partition, OffsetsPartition) and is_shown(partition.journal):
                yield from compare_offsets(broker, partition)


def is_written(journal: Journal) -> bool:
    return journal.watermarks.written == journal.watermarks.appended


def is_shown(journal: Journal) -> bool:
    return journal.watermarks.durable == journal.watermarks.appended


def files_of(journal: Journal, identity: bytes) -> JournalFiles:
    return open_journal(journal.directory, identity, lambda _bytes: None)[0]


def table_of(broker: Broker, home: MetadataJournal) -> Any:
    files = files_of(home.journal, home.identity)
    anew = MetadataJournal(home.number, cast(Journal, files), broker.store, cast(DiskPool, None))
    anew.open()
    return anew.table


def compare_catalogue(broker: Broker) -> Iterator[str]:
    """What writes of the catalogue are decided by, and what others read of it."""
    live = broker.catalogue
    if not is_written(live.journal):
        return
    files = files_of(live.journal, CATALOGUE_IDENTITY)
    anew = CatalogueJournal(cast(Journal, files), broker.store, cast(DiskPool, None))
    anew.open()
    yield from compare("the catalogue", live._appended, anew._appended)
    yield from compare_epochs(broker, live.journal, CATALOGUE_IDENTITY)
    if is_shown(live.journal):
        yield from compare("the catalogue as it is read", live._durable, anew._durable)


def compare_epochs(broker: Broker, journal: Journal, identity: bytes) -> Iterator[str]:
    """The leader epochs of a journal's entries, by position."""
    checkpoint = decode_journal_checkpoint(broker.store.get("checkpoints", identity))
    files, epochs = files_of(journal, identity), checkpoint.epochs
    for recovered in files.entries(checkpoint.position) if files.segments else ():
        epochs = epochs_with(epochs, recovered.entry)
    anew = epochs.trim(journal.start_position)
    yield from compare(f"leader epochs in {journal.directory}", str(journal.epochs), str(anew))


class FoldedAnew:
    """A partition's state, spans and ranks, from its checkpoint and its journal."""

    def __init__(self, broker: Broker, partition: Partition, files: JournalFiles) -> None:
        self._partition = partition
        self._store, self._identity = broker.store, partition.identity
        self.state = self._checkpointed()
        self._spans = Spans(self._identity, broker.store)
        self._ranks: list[int] = []
        for recovered in files.entries(self.state.position) if files.segments else ():
            self._fold(recovered)

    def _checkpointed(self) -> PartitionState:
        value = self._store.get("checkpoints", self._identity)
        if value is None:
            return PartitionState()
        scanned = (self._store.scan(name, self._identity) for name in ("producers", "transactions"))
        return restore(decode_checkpoint(value), *scanned)

    def _fold(self, recovered: Recovered) -> None:
        has_batches = not isinstance(self._partition, OffsetsPartition)
        effect = self.state.fold(recovered.entry, recovered.payload, has_batches=has_batches)
        if isinstance(effect, CopyTransaction):
            self._spans.note(effect)
            self._ranks.append(effect.rank)

    def faults(self) -> Iterator[str]:
        """Spans that memory and the journal have differently, and ranks that fall."""
        name, ranks = self._partition.name, self._ranks
        if isinstance(self._partition, HostedPartition):
            log = self._partition.log
            anew = list(self._spans.between(log.start_offset, log.end_offset))
            if anew != list(self._partition.copier.spans.between(log.start_offset, log.end_offset)):
                yield f"spans of {name} differ from those that the journal gives when it is folded anew"
            ranks = [span.rank for span in anew]
        if ranks != sorted(ranks):
            yield f"ranks fall in {name}: {ranks}"


def compare_offsets(broker: Broker, partition: OffsetsPartition) -> Iterator[str]:
    """The table of group offsets, and the offsets of undecided transactions."""
    files = files_of(partition.journal, partition.identity)
    anew = GroupOffsets(partition.identity, cast(Journal, files), broker.store)
    anew.load()
    value = broker.store.get("checkpoints", partition.identity)
    state = PartitionState()
    if value is not None:
        scanned = (broker.store.scan(name, partition.identity) for name in ("producers", "transactions"))
        state = restore(decode_checkpoint(value), *scanned)
    for recovered in files.entries(state.position) if files.segments else ():
        effect = state.fold(recovered.entry, recovered.payload, has_batches=False)
        if effect is not None:
            anew.push(effect, recovered.payload)
    for transaction_id, transaction in state.undecided.items():
        if transaction.drafts:
            anew.recover_open(transaction_id, transaction.head)
    table = partition.table
    for name in ("_committed", "_unstable", "_kept"):
        yield from compare(f"{name} of {partition.name}", getattr(table, name), getattr(anew, name))
    yield from compare_members(broker, partition)


def compare_members(broker: Broker, partition: OffsetsPartition) -> Iterator[str]:
    """The groups with members that claim to be stored in their present state."""
    groups = [pair for shard in broker.shards for pair in shard.groups._registry.groups.items()]
    for group_id, group in groups:
        if broker.shards.offsets_of(group_id).partition_of(group_id) is partition and group.is_stored:
            kept = partition.table.kept().get(group_id)
            stored = kept.metadata._replace(changed_ms=0) if kept is not None else None
            yield from compare(f"group {group_id!r}", group.metadata, stored)


def compare(what: str, live: Any, anew: Any) -> Iterator[str]:
    """The paths at which two values differ."""
    live, anew = plain(live), plain(anew)
    if isinstance(live, dict) and isinstance(anew, dict):
        for key in dict.fromkeys((*live, *anew)):
            yield from compare(f"{what}, {key}", live.get(key, "nothing"), anew.get(key, "nothing"))
    elif live != anew:
        yield f"{what} is {live}, and {anew} when the journal is folded anew"


def plain(value: Any) -> Any:
    """An object as a dict of its fields. Lists are sorted, since their order does not count."""
    if isinstance(value, tuple):  # transactions that are joined are compared where they are listed
        return tuple(each.id if isinstance(each, Transaction) else each for each in value)
    if isinstance(value, Enum):
        return value
    if isinstance(value, list):
        return sorted(value)
    if isinstance(value, (Producers, ProducerTable)):  # whether they sleep does not count
        return dict(value.items())
    names = getattr(type(value), "__slots__", None) or getattr(value, "__dict__", {})
    return {name: getattr(value, name) for name in names if name not in NOT_FOLDED} if names else value
