"""What a coordinator makes of its journals after a restart: it finishes what was decided, goes on with what
is open, and aborts what may have lost drafts.

| state          | what is there                                        | what becomes of it          |
|----------------|------------------------------------------------------|-----------------------------|
| PREPARE_COMMIT | all promises, or one branch that is applied          | apply                       |
|                | a promise is missing, but nothing that was written   | ask for it again            |
|                | a promise is missing, and drafts may be, too         | abort: no ack was given     |
|                | a participant can't tell                             | wait until it is repaired   |
| PREPARE_ABORT  |                                                      | discard                     |
| ONGOING        | everything, after an orderly stop                    | goes on                     |
|                | all its acked drafts, and participants are sound     | goes on (P9)                |
|                | otherwise                                            | abort                       |

Acked drafts survive a kill, and, if `Transaction.is_durable`, a loss of power.

A participant that can't tell is not waited for if a later commit of the group is applied somewhere: they are
applied in order, so that one proves the promises of all before it (`overtaken`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from faircopy.copier.fold import NO_FENCE, NO_RANK
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.partition.participant import Participants, Promise
from faircopy.transactions.commits import Commit, Commits
from faircopy.transactions.endings import Endings
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.state import TransactionState
from faircopy.transactions.survival import Survival
from faircopy.transactions.transaction import BranchId, NewEntry, Transaction


class Recovery:
    """One recovery of a coordinator's transactions."""

    def __init__(
        self, find_participant: Participants, commits: Commits, endings: Endings, survival: Survival
    ) -> None:
        self._find_participant = find_participant
        self._commits = commits
        self._endings = endings
        self._survival = survival
        self.aborted: list[Transaction] = []

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
            case TransactionState.ONGOING if self._goes_on(transaction):
                self._resume(transaction)
            case _:
                self._abort(home, transaction)
        return None

    def _resume(self, transaction: Transaction) -> None:
        for each in transaction.participants:
            self._find_participant(each).resume_transaction(
                transaction.id, transaction.transactional_id, is_durable=each in transaction.durable_in
            )

    def _abort(self, home: MetadataJournal, transaction: Transaction) -> None:
        self.aborted += transaction.united
        self._endings.abort(home, transaction, NO_FENCE, untold=True)

    def _goes_on(self, transaction: Transaction) -> bool:
        """Whether an open transaction has all of its drafts."""
        if self._survival is Survival.EVERYTHING:
            return True
        if not self._has_acked_drafts(transaction):
            return False
        # Where it is discarded, an earlier start has aborted it, and was killed before that was written here.
        promises = promises_of(self._find_participant, transaction).values()
        return not {Promise.UNKNOWN, Promise.LOST}.intersection(promises)

    def _settle_prepared(
        self, home: MetadataJournal, transaction: Transaction, *, is_proven: bool
    ) -> Commit | None:
        """The commit, if every participant kept its promise."""
        promises = promises_of(self._find_participant, transaction)
        found = is_promised(promises.values(), is_proven=is_proven)
        if found is False and self._may_lack_drafts(transaction, promises):
            self._abort(home, transaction)
            return None
        commit = self._commits.found(home, transaction, is_promised=bool(found))
        if found is False and Promise.UNKNOWN not in promises.values():
            self._commits.ask(commit, not_given(promises))
        return commit if found else None

    def _may_lack_drafts(self, transaction: Transaction, promises: Mapping[BranchId, Promise]) -> bool:
        return not self._has_acked_drafts(transaction) or Promise.LOST in promises.values()

    def _has_acked_drafts(self, transaction: Transaction) -> bool:
        """Whether no crash took a draft that was acked, as far as its participants are sound."""
        if self._survival is Survival.SYNCED:
            return all(each.is_durable for each in transaction.united)
        return not self._survival.is_loss


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


def promises_of(find_participant: Participants, transaction: Transaction) -> dict[BranchId, Promise]:
    """What is known of the promise of each branch."""
    return {
        each: find_participant(each.partition).promise_of(each.transaction) for each in transaction.branches
    }


def not_given(promises: Mapping[BranchId, Promise]) -> list[BranchId]:
    """The branches whose PREPARED is missing."""
    return [branch for branch, promise in promises.items() if promise is Promise.NOT_GIVEN]


def is_promised(promises: Collection[Promise], *, is_proven: bool = False) -> bool | None:
    """Whether every branch has its PREPARED; None if a participant that may have one can't tell, and it is
    not proven otherwise (`overtaken`).

    A branch that is applied proves that all had it: others may have been deleted since.
    """
    if Promise.KEPT in promises:
        return True
    if Promise.LOST in promises or Promise.NOT_GIVEN in promises:
        return False
    return None if Promise.UNKNOWN in promises and not is_proven else True


def rank_of(find_participant: Participants, transaction: Transaction) -> int:
    """The rank of a transaction of which some branches were applied when a crash came, or else NO_RANK."""
    ranks = (find_participant(each.partition).rank_of(each.transaction) for each in transaction.branches)
    return max(ranks, default=NO_RANK)


def note_loss(home: MetadataJournal, *, is_all: bool) -> None:
    """Make producers abort first: a transaction may have lost its BEGIN, and its drafts. Unless it `is_all`,
    those that have lost nothing go on (`Producer.is_safe`).
    """
    if home.table.producers:
        home.append(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {"all": is_all}))
