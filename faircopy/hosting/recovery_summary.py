"""What a start found in the journals and did with it, for the broker's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from faircopy.catalogue.journal import CatalogueJournal
from faircopy.journal.entry import TransactionId
from faircopy.partition.partition import Partition
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.state import TransactionState

States = dict[TransactionId, TransactionState]


class Folded(NamedTuple):
    """The findings once all journals are folded, and nothing is decided yet."""

    states: States
    read_bytes: int


class RecoverySummary(NamedTuple):
    """The outcome of a start. Its transactions are those that were not over when the broker last stopped."""

    partitions: int
    stopped: int
    journal_bytes: int
    torn_tails: int
    committed: int
    aborted: int
    continued: int
    duration_ms: float

    def __str__(self) -> str:
        return (
            f"recovered {self.partitions} partition(s) in {self.duration_ms:.0f} ms, {self.stopped} of them "
            f"stopped; {self.journal_bytes:,} bytes of journals read, {self.torn_tails} torn tail(s) cut; of "
            f"the transactions that were not over {self.committed} committed, {self.aborted} aborted, "
            f"{self.continued} go on"
        )


def states_of(homes: Iterable[MetadataJournal]) -> States:
    """The states of all transactions that are not over."""
    return {
        txid: transaction.state for home in homes for txid, transaction in home.table.transactions.items()
    }


def when_folded(
    partitions: Iterable[Partition], homes: Sequence[MetadataJournal], catalogue_bytes: int
) -> Folded:
    """The findings. The bytes read are those after each checkpoint; `catalogue_bytes` are the catalogue's."""
    read_bytes = sum(
        partition.bytes_since_checkpoint for partition in partitions if partition.failure is None
    )
    read_bytes += sum(home.bytes_since_checkpoint for home in homes)
    return Folded(states_of(homes), read_bytes + catalogue_bytes)


def summarize(
    hosted: Sequence[Partition],
    internal: Sequence[Partition],
    homes: Sequence[MetadataJournal],
    catalogue: CatalogueJournal,
    folded: Folded,
    duration_ms: float,
) -> RecoverySummary:
    """Summarize a start, after everything is decided. `hosted` are the partitions of topics; `internal` are
    those that no client knows.
    """
    after = states_of(homes)
    ends = Counter(end_of(state, after.get(txid)) for txid, state in folded.states.items())
    shared = [catalogue.journal, *(home.journal for home in homes)]
    journals = [*shared, *(partition.journal for partition in (*hosted, *internal))]
    return RecoverySummary(
        partitions=len(hosted),
        stopped=sum(partition.failure is not None for partition in hosted),
        journal_bytes=folded.read_bytes,
        torn_tails=sum(journal.was_torn for journal in journals),
        committed=ends[TransactionState.COMMITTED],
        aborted=ends[TransactionState.ABORTED],
        continued=ends[TransactionState.ONGOING],
        duration_ms=duration_ms,
    )


def end_of(before: TransactionState, after: TransactionState | None) -> TransactionState:
    """A start's outcome for a transaction. One that is gone has ended as its state demanded."""
    state = after or before
    if state in (TransactionState.PREPARE_COMMIT, TransactionState.COMMITTED):
        return TransactionState.COMMITTED
    return TransactionState.ONGOING if after is TransactionState.ONGOING else TransactionState.ABORTED
