"""What a coordinator makes of its journals after a restart: it finishes what was decided, aborts what may
have lost drafts, and goes on with the rest.

| state          | all participants kept their promise | one has lost it         | one can't tell            |
|----------------|-------------------------------------|-------------------------|---------------------------|
| PREPARE_COMMIT | apply                               | abort: no ack was given | wait until it is repaired |
| PREPARE_ABORT  | discard                             | discard                 | discard                   |
| ONGOING        | after an orderly stop: goes on; otherwise: abort                            |||

A participant that can't tell is not waited for if a later commit of the group is applied somewhere: they are
applied in order, so that one proves the promises of all before it (`overtaken`).
"""

from __future__ import annotations

from collections.abc import Sequence

from faircopy.copier.fold import NO_FENCE, NO_RANK
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.partition.participant import Participants, Promise
from faircopy.transactions.commits import Commit, Commits
from faircopy.transactions.endings import Endings
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import NewEntry, Transaction


class Recovery:
    """One recovery of a coordinator's transactions. `is_clean`: the last run ended in order, with every draft
    durable.
    """

    def __init__(
        self, find_participant: Participants, commits: Commits, endings: Endings, *, is_clean: bool
    ) -> None:
        self._find_participant = find_participant
        self._commits = commits
        self._endings = endings
        self._is_clean = is_clean

    def settle(self, journals: Sequence[MetadataJournal]) -> list[Commit]:
        """Settle all transactions in the journals, and return the commits that may be applied. The journals
        must be folded, and so must those of the participants.
        """
        promised = [commit for home in journals for commit in self._settle_journal(home)]
        for commit in promised:
            commit.rank = rank_of(self._find_participant, commit.transaction)
        return promised

    def _settle_journal(self, home: MetadataJournal) -> list[Commit]:
        """The commits that may be applied; all other transactions are aborted, go on, or wait."""
        known = [each for each in home.table.transactions.values() if each.lead is None]
        known.sort(key=lambda each: each.prepared_position)
        proven = overtaken(self._find_participant, known)
        settled = [self._settle_one(home, each, is_proven=each.id in proven) for each in known]
        return [commit for commit in settled if commit is not None]

    def _settle_one(
        self, home: MetadataJournal, transaction: Transaction, *, is_proven: bool
    ) -> Commit | None:
        match transaction.state:
            case TransactionState.PREPARE_COMMIT:
                return self._settle_prepared(home, transaction, is_proven=is_proven)
            case TransactionState.PREPARE_ABORT:
                self._endings.discard(home, transaction)
            case TransactionState.ONGOING if self._is_clean:
                for participant in map(self._find_participant, transaction.participants):
                    participant.open_transaction(transaction.id, transaction.transactional_id)
            case _:
                self._endings.abort(home, transaction, NO_FENCE, untold=True)
        return None

    def _settle_prepared(
        self, home: MetadataJournal, transaction: Transaction, *, is_proven: bool
    ) -> Commit | None:
        """The commit, if every participant kept its promise."""
        found = is_promised(self._find_participant, transaction, is_proven=is_proven)
        if found is False:
            self._endings.abort(home, transaction, NO_FENCE, untold=True)
            return None
        commit = self._commits.found(home, transaction, is_promised=bool(found))
        return commit if found else None


def overtaken(find_participant: Participants, in_order: Sequence[Transaction]) -> set[TransactionId]:
    """The commits of which a later one of their group is applied somewhere. So they had all their promises
    too (P5). `in_order`: as their journal decided them.
    """
    groups, found = set[str](), set[TransactionId]()
    for transaction in reversed(in_order):
        if transaction.state is not TransactionState.PREPARE_COMMIT:
            continue
        if transaction.group in groups:
            found.add(transaction.id)
        elif rank_of(find_participant, transaction) != NO_RANK:
            groups.add(transaction.group)
    return found


def is_promised(
    find_participant: Participants, transaction: Transaction, *, is_proven: bool = False
) -> bool | None:
    """Whether every branch has its PREPARED; None if a participant that may have one can't tell, and it is
    not proven otherwise (`overtaken`).

    A branch that is applied proves that all had it: others may have been deleted since.
    """
    found = {find_participant(each.partition).promise_of(each.transaction) for each in transaction.branches}
    if Promise.KEPT in found:
        return True
    if Promise.LOST in found:
        return False
    return None if Promise.UNKNOWN in found and not is_proven else True


def rank_of(find_participant: Participants, transaction: Transaction) -> int:
    """The rank of a transaction of which some branches were applied when a crash came, or else NO_RANK."""
    ranks = (find_participant(each.partition).rank_of(each.transaction) for each in transaction.branches)
    return max(ranks, default=NO_RANK)


def note_loss_of_power(home: MetadataJournal) -> None:
    """Make every producer abort first: any transaction may have lost its BEGIN, and its drafts."""
    if home.table.producers:
        home.append(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {}))
