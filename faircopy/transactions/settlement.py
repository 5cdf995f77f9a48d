"""All coordinators of a process after a restart: each settles what it knows, and commits go on in one order.

What no coordinator knows is over: its drafts are discarded, and its producers are forgotten, in the end. Each
coordinator knows only its own, so all must be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faircopy.copier.fold import NO_FENCE
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.partition import Partition
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.order import by_rank
from faircopy.transactions.survival import Survival

NOTHING_FINISHED = -1


def settle(
    coordinators: Sequence[TransactionCoordinator],
    partitions: Iterable[Partition],
    survival: Survival,
) -> None:
    """Settle everything, once all journals are folded."""
    promised = [
        (commit.group, commit.rank, (coordinator, commit))
        for coordinator in coordinators
        for commit in coordinator.settle(survival)
    ]
    for rank, (coordinator, commit) in by_rank(promised):
        commit.rank = rank
        coordinator.go_on(commit)
    settle_strays(coordinators, partitions)


def settle_strays(coordinators: Sequence[TransactionCoordinator], partitions: Iterable[Partition]) -> None:
    """Settle the drafts of a transaction that no coordinator knows to have written in their partition: a
    crash may have taken only the ADD of that partition. If the transaction goes on, it is added again.
    Otherwise they are discarded. Call it only when all journals are folded.
    """
    journals = [home for coordinator in coordinators for home in coordinator.journals]
    known = {
        (transaction_id, participant)
        for home in journals
        for transaction_id, transaction in home.table.transactions.items()
        for participant in transaction.participants
    }
    # A failed partition does not know the end of its journal, where it would write.
    for partition in (each for each in partitions if each.failure is None):
        for transaction_id in strays(partition, known):
            if not any(coordinator.adopt(transaction_id, partition) for coordinator in coordinators):
                partition.discard(transaction_id, NO_FENCE, NOTHING_FINISHED, lambda: None)


def strays(partition: Partition, known: set[tuple[TransactionId, TopicIdPartition]]) -> list[TransactionId]:
    """The undecided transactions in a partition that are not in `known`."""
    return [
        transaction_id
        for transaction_id in partition.state.undecided
        if (transaction_id, partition.id) not in known
    ]


def unknown_producers(journals: Iterable[MetadataJournal], partitions: Iterable[Partition]) -> set[int]:
    """The producer ids of transactions in these partitions whose transactional ids are forgotten. Partitions
    were told when that happened, but not those that a crash came before, that had failed, or that had no
    leader.

    They may be told once the journals, as they are now, are durable: who lost the end of a journal in a crash
    would ask for its promises again.
    """
    unknown = {each for partition in partitions for each in partition.state.producers_with_transactions()}
    for table in (home.table for home in journals) if unknown else ():
        unknown.difference_update(table.producers.producer_ids())
        unknown.difference_update(transaction_id.producer_id for transaction_id in table.transactions)
    return unknown
