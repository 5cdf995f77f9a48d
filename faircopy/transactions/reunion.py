"""What a coordinator does when partitions have a leader again: it tells them what they have missed.

| state          | what they are told                                                                      |
|----------------|-----------------------------------------------------------------------------------------|
| ONGOING        | the TxId: drafts of its producer belong to it                                           |
| PREPARE_ABORT  | DISCARD, if they have not answered it                                                   |
| PREPARE_COMMIT | APPLY, if they have not answered it; if the commit waits for promises, they are asked   |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from faircopy.copier.fold import NO_FENCE
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.participant import Participants, Promise
from faircopy.transactions.commits import Commit, Commits
from faircopy.transactions.endings import Endings
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.recovery import is_promised, not_given, overtaken, promises_of, rank_of
from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import BranchId, Transaction

IsThere = Callable[[TopicIdPartition], bool]
"""Whether a partition is one of those that are led again."""


class Missed(NamedTuple):
    """A commit, and the branches whose participants must be told of it."""

    commit: Commit
    branches: list[BranchId]


class Reunion:
    """The reunion of one coordinator with partitions that are led again."""

    def __init__(
        self,
        journals: Iterable[MetadataJournal],
        find_participant: Participants,
        commits: Commits,
        endings: Endings,
        is_there: IsThere,
    ) -> None:
        self._journals = journals
        self._find_participant = find_participant
        self._commits = commits
        self._endings = endings
        self._is_there = is_there

    def tell(self) -> None:
        """Tell them everything except what is to be applied."""
        for home in self._journals:
            for transaction in list(home.table.transactions.values()):
                self._tell_of(transaction)

    def _tell_of(self, transaction: Transaction) -> None:
        there = list(filter(self._is_there, transaction.participants))
        if transaction.state is TransactionState.PREPARE_ABORT:
            self._endings.discard_in(transaction, there)
        elif transaction.state is TransactionState.ONGOING:
            for each in there:
                self._find_participant(each).open_transaction(
                    transaction.id,
                    transaction.transactional_id,
                    is_durable=each in transaction.durable_in,
                )

    def missed(self) -> list[Missed]:
        """What must be applied there. The caller puts that of all coordinators in order, by rank."""
        found = [
            Missed(commit, [each for each in commit.transaction.branches if self._is_there(each.partition)])
            for commit in self._commits.unapplied()
        ]
        return [each for each in found if each.branches]

    def decide(self) -> list[Commit]:
        """Decide the commits that waited for these partitions. Returns those that are promised. Of others,
        promises are asked for: as nothing was lost meanwhile, only a branch that is discarded can't give one.
        """
        promised = []
        proven = overtaken(self._find_participant, self._commits.in_order())
        for commit in self._commits.undecided():
            is_proven = commit.transaction.id in proven
            promises = promises_of(self._find_participant, commit.transaction)
            found = is_promised(promises.values(), is_proven=is_proven)
            if found:
                commit.rank = rank_of(self._find_participant, commit.transaction)
                promised.append(commit)
            elif Promise.LOST in promises.values():
                self._commits.drop(commit)
                self._endings.abort(commit.home, commit.transaction, NO_FENCE, untold=True)
            elif found is False and Promise.UNKNOWN not in promises.values():
                self._commits.ask(commit, not_given(promises))
        return promised
