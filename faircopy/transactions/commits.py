"""Commits in flight, from the decision to the last APPLY (docs/ARCHITECTURE.md, Transactions).

PREPARE_COMMIT and the PREPARED of every branch are appended in one tick and become durable side by side. Then
the commit is acknowledged. Then APPLY goes to every branch; within a group, in the order in which the journal
decided (P5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from faircopy.copier.fold import NO_RANK, ApplyOrder
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.loop.waiting import tell
from faircopy.partition.participant import Participants
from faircopy.transactions.answers import Answers
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.transaction import BranchId, NewEntry, Transaction

Applied = Callable[[MetadataJournal, Transaction], None]

THE_DECISION = None
"""Stands for the commit's own entry among those that must answer before the commit is promised."""


class Commit:
    """One commit in flight. It waits for promises, then for its turn in its group, then until every branch is
    applied. It may be lost with the process: recovery rebuilds it from the journals.

    `transaction` is the lead of all that the decision commits. `answers` are those to the last message to the
    branches.
    """

    __slots__ = ("ack", "answers", "home", "is_applying", "rank", "transaction")

    def __init__(
        self, home: MetadataJournal, transaction: Transaction, ack: asyncio.Future[None] | None
    ) -> None:
        self.home = home
        self.transaction = transaction
        self.ack = ack
        self.rank = NO_RANK
        self.is_applying = False
        self.answers: Answers[BranchId | None] | None = None

    @property
    def group(self) -> str:
        """The group of its transactional id: commits of one group are applied in order."""
        return self.transaction.group

    def promise(
        self,
        asked: Iterable[BranchId],
        find_participant: Participants,
        finished: FinishedNumbers,
        promised: Callable[[], None],
    ) -> None:
        """Append all promises; once they and the decision are durable, the commit can't be lost (I5)."""
        answers = self.answers = Answers((THE_DECISION, *asked), promised)
        for branch in asked:
            find_participant(branch.partition).prepare(
                branch.transaction,
                finished.of(branch.transaction.producer_id),
                partial(answers.note, branch),
            )
        self.home.journal.when_durable(partial(answers.note, THE_DECISION))

    def apply(
        self, find_participant: Participants, finished: FinishedNumbers, applied: Callable[[], None]
    ) -> None:
        """Send APPLY to every branch, in one tick, so that every tick is a consistent cut."""
        branches = self.transaction.branches
        self.is_applying = True
        self.answers = Answers(branches, applied)
        self.apply_in(branches, find_participant, finished)
        if not branches:
            applied()

    def apply_in(
        self, branches: Iterable[BranchId], find_participant: Participants, finished: FinishedNumbers
    ) -> None:
        """Send APPLY to these branches; those that already have it just answer."""
        answers = self.answers
        assert answers is not None
        lead = self.transaction.id
        for branch in branches:
            order = ApplyOrder(finished.of(branch.transaction.producer_id), self.rank, lead)
            find_participant(branch.partition).apply(branch.transaction, order, partial(answers.note, branch))

    def give_up(self, error: FaircopyError) -> None:
        """Another coordinator takes over: fail the waiting client with `error`."""
        if self.answers is not None:
            self.answers.close()
        if self.ack is not None and not self.ack.done():
            self.ack.set_exception(error)
            self.ack.exception()  # nobody may be waiting any more


class Commits:
    """All in-flight commits of one coordinator."""

    def __init__(
        self,
        find_participant: Participants,
        finished: FinishedNumbers,
        ranks: Numbers,
        applied: Applied,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._find_participant = find_participant
        self._finished = finished
        self._ranks = ranks
        self._applied = applied
        self._loop = loop
        self._in_flight: dict[TransactionId, Commit] = {}
        self._order = GroupOrder()
        self._undecided: set[TransactionId] = set()
        self._is_deposed = False

    def start(
        self, home: MetadataJournal, transaction: Transaction, decision: NewEntry
    ) -> asyncio.Future[None]:
        """Decide to commit. The future is done once the commit can't be lost."""
        ack: asyncio.Future[None] = self._loop.create_future()
        commit = self._in_flight[transaction.id] = Commit(home, transaction, ack)
        self._order.decided(commit.group, transaction.id)
        home.append(decision)
        commit.promise(
            self.promising(transaction),
            self._find_participant,
            self._finished,
            partial(self._can_be_acked, commit),
        )
        return ack

    def promising(self, transaction: Transaction) -> Iterable[BranchId]:
        """The branches that must be promised before the ack: all of them (I5)."""
        return transaction.branches

    def ack_of(self, transaction: TransactionId) -> asyncio.Future[None] | None:
        """What a repeated EndTxn waits for; None if there is nothing left to wait for."""
        commit = self._in_flight.get(transaction)
        return commit.ack if commit is not None else None

    def _can_be_acked(self, commit: Commit) -> None:
        if commit.ack is not None:
            tell(commit.ack)
        for released in self._order.durable(commit.group, commit.transaction.id):
            # The ack is written in the next tick of the loop: nothing that follows should delay it.
            self._loop.call_soon(self._loop.call_soon, self.apply, self._in_flight[released])

    def apply(self, commit: Commit) -> None:
        """Apply a commit, after all that were applied before it (its rank)."""
        if self._is_deposed:
            return
        if commit.rank == NO_RANK:
            commit.rank = self._ranks.take()
        commit.apply(self._find_participant, self._finished, partial(self.over, commit))

    def over(self, commit: Commit) -> None:
        """Every branch is applied."""
        del self._in_flight[commit.transaction.id]
        self._applied(commit.home, commit.transaction)

    def acks(self) -> list[asyncio.Future[None]]:
        """The acks that clients still wait for."""
        commits = self._in_flight.values()
        return [commit.ack for commit in commits if commit.ack is not None and not commit.ack.done()]

    # -- after a crash ---------------------------------------------------------------------------------------

    def found(self, home: MetadataJournal, transaction: Transaction, *, is_promised: bool) -> Commit:
        """Take up a commit that was decided before a crash; call in the journal's order. If not all promises
        are known to be kept, it waits until the participants that can't tell can, and so do later commits of
        its group (P5).
        """
        commit = self._in_flight[transaction.id] = Commit(home, transaction, None)
        self._order.decided(commit.group, transaction.id)
        if not is_promised:
            self._undecided.add(transaction.id)
        return commit

    def ask(self, commit: Commit, missing: Iterable[BranchId]) -> None:
        """Ask for the promises that a crash took. No draft is lost, so they can be made now: whoever asks for
        this commit again is told when they are durable.
        """
        self._undecided.discard(commit.transaction.id)
        commit.ack = self._loop.create_future()
        promised = partial(self._can_be_acked, commit)
        commit.promise(list(missing), self._find_participant, self._finished, promised)

    def go_on(self, commit: Commit) -> None:
        """Apply a promised commit, once all commits before it in its group may be applied."""
        self._undecided.discard(commit.transaction.id)
        for released in self._order.durable(commit.group, commit.transaction.id):
            self.apply(self._in_flight[released])

    def is_undecided(self, transactions: Iterable[TransactionId]) -> bool:
        """Whether, for one of these, it is unknown whether it is committed."""
        return not self._undecided.isdisjoint(transactions)

    # -- when leaders change ---------------------------------------------------------------------------------

    def undecided(self) -> list[Commit]:
        """The commits that may or may not be promised, in the order of their groups."""
        return [commit for transaction, commit in self._in_flight.items() if transaction in self._undecided]

    def in_order(self) -> list[Transaction]:
        """All that are in flight, in the order of their groups."""
        return [commit.transaction for commit in self._in_flight.values()]

    def drop(self, commit: Commit) -> None:
        """Drop a commit that is aborted since a promise was lost; later ones of its group go on."""
        del self._in_flight[commit.transaction.id]
        self._undecided.discard(commit.transaction.id)
        for released in self._order.removed(commit.group, commit.transaction.id):
            self.apply(self._in_flight[released])

    def unapplied(self) -> list[Commit]:
        """The commits that some participant has yet to apply."""
        return [commit for commit in self._in_flight.values() if commit.is_applying]

    def apply_again(self, commit: Commit, branches: Iterable[BranchId]) -> None:
        """Send APPLY again to branches whose participants may have missed it."""
        commit.apply_in(branches, self._find_participant, self._finished)

    def depose(self, error: FaircopyError) -> None:
        """Another coordinator takes over all of them."""
        self._is_deposed = True
        for commit in self._in_flight.values():
            commit.give_up(error)
