"""Commits in flight, from the decision to the last APPLY (docs/ARCHITECTURE.md, Transactions).

PREPARE_COMMIT and every participant's PREPARED are appended in one tick and become durable side by side; then the ack;
then APPLY goes to every participant, in the order in which the journal decided within a group (P5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from faircopy.copier.fold import NO_RANK
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.waiting import tell
from faircopy.partition.participant import Participants
from faircopy.transactions.answers import Answers
from faircopy.transactions.decisions import prepare_commit
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.transaction import Transaction, group_of

Applied = Callable[[MetadataJournal, Transaction], None]

THE_DECISION = None
"""What answers beside the participants when a commit is promised: its own entry."""


class Commit:
    """One commit: first it waits for promises, then for its turn in its group, then until each participant has applied
    it. May die with the process: recovery makes it again from what the journals hold.

    `answers` are those to what its participants were told last.
    """

    __slots__ = ("ack", "answers", "home", "is_applying", "rank", "transaction")

    def __init__(self, home: MetadataJournal, transaction: Transaction, ack: asyncio.Future[None] | None) -> None:
        self.home = home
        self.transaction = transaction
        self.ack = ack
        self.rank = NO_RANK
        self.is_applying = False
        self.answers: Answers[TopicIdPartition | None] | None = None

    @property
    def group(self) -> str:
        """The group of its transactional id: commits of one group are applied in order."""
        return group_of(self.transaction.transactional_id)

    def promise(
        self,
        asked: Iterable[TopicIdPartition],
        find_participant: Participants,
        finished: int,
        promised: Callable[[], None],
    ) -> None:
        """Append the decision and all promises; when all are durable the commit can't be lost (I5)."""
        answers = self.answers = Answers((THE_DECISION, *asked), promised)
        self.home.append(prepare_commit(self.transaction))
        for each in asked:
            find_participant(each).prepare(self.transaction.id, finished, partial(answers.note, each))
        self.home.journal.when_durable(partial(answers.note, THE_DECISION))

    def apply(self, find_participant: Participants, finished: int, applied: Callable[[], None]) -> None:
        """Send APPLY to every participant, in one tick, so that every tick is a consistent cut."""
        participants = self.transaction.participants
        self.is_applying = True
        self.answers = Answers(participants, applied)
        self.apply_in(participants, find_participant, finished)
        if not participants:
            applied()

    def apply_in(self, participants: Iterable[TopicIdPartition], find_participant: Participants, finished: int) -> None:
        """Send APPLY to these participants; those that have it already only answer."""
        answers = self.answers
        assert answers is not None
        for each in participants:
            find_participant(each).apply(self.transaction.id, finished, self.rank, partial(answers.note, each))

    def give_up(self, error: FaircopyError) -> None:
        """Somebody else goes on with it: who waits for it is told why."""
        if self.answers is not None:
            self.answers.close()
        if self.ack is not None and not self.ack.done():
            self.ack.set_exception(error)
            self.ack.exception()  # nobody may be waiting any more


class Commits:
    """All commits of one coordinator that are in flight."""

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

    def start(self, home: MetadataJournal, transaction: Transaction) -> asyncio.Future[None]:
        """Decide for commit. What is returned is done when the commit can't be lost."""
        ack: asyncio.Future[None] = self._loop.create_future()
        commit = self._in_flight[transaction.id] = Commit(home, transaction, ack)
        self._order.decided(commit.group, transaction.id)
        finished = self._finished.of(transaction.id.producer_id)
        commit.promise(
            self.promising(transaction), self._find_participant, finished, partial(self._can_be_acked, commit)
        )
        return ack

    def promising(self, transaction: Transaction) -> Iterable[TopicIdPartition]:
        """Who has to promise before the ack: every participant (I5)."""
        return transaction.participants

    def ack_of(self, transaction: TransactionId) -> asyncio.Future[None] | None:
        """What a repeated EndTxn waits for; None if there is nothing to wait for any more."""
        commit = self._in_flight.get(transaction)
        return commit.ack if commit is not None else None

    def _can_be_acked(self, commit: Commit) -> None:
        if commit.ack is not None:
            tell(commit.ack)
        for released in self._order.durable(commit.group, commit.transaction.id):
            # The ack is written in the loop's next tick: nothing that follows is to stand in its way.
            self._loop.call_soon(self._loop.call_soon, self.apply, self._in_flight[released])

    def apply(self, commit: Commit) -> None:
        """Have a commit applied, after all that were applied before (its rank)."""
        if self._is_deposed:
            return
        if commit.rank == NO_RANK:
            commit.rank = self._ranks.take()
        finished = self._finished.of(commit.transaction.id.producer_id)
        commit.apply(self._find_participant, finished, partial(self.over, commit))

    def over(self, commit: Commit) -> None:
        """Every participant has applied it."""
        del self._in_flight[commit.transaction.id]
        self._applied(commit.home, commit.transaction)

    def acks(self) -> list[asyncio.Future[None]]:
        """What clients still wait for."""
        commits = self._in_flight.values()
        return [commit.ack for commit in commits if commit.ack is not None and not commit.ack.done()]

    # -- after a crash -------------------------------------------------------------------------------------------

    def found(self, home: MetadataJournal, transaction: Transaction, *, is_promised: bool) -> Commit:
        """A commit that was decided before a crash; call in the journal's order. If not all promises are known to be
        held, it waits until what can't say can, and its group's later ones with it (P5).
        """
        commit = self._in_flight[transaction.id] = Commit(home, transaction, None)
        self._order.decided(commit.group, transaction.id)
        if not is_promised:
            self._undecided.add(transaction.id)
        return commit

    def go_on(self, commit: Commit) -> None:
        """Apply what was promised, once all before it in its group are."""
        self._undecided.discard(commit.transaction.id)
        for released in self._order.durable(commit.group, commit.transaction.id):
            self.apply(self._in_flight[released])

    def is_undecided(self, transactions: Iterable[TransactionId]) -> bool:
        """Whether of one of these it is not known if it is committed."""
        return not self._undecided.isdisjoint(transactions)

    # -- when leaders change -------------------------------------------------------------------------------------

    def undecided(self) -> list[Commit]:
        """The commits of which it is not known whether they are promised, in the order of their groups."""
        return [commit for transaction, commit in self._in_flight.items() if transaction in self._undecided]

    def drop(self, commit: Commit) -> None:
        """A promise was lost, so it is aborted: those that waited for it in its group go on."""
        del self._in_flight[commit.transaction.id]
        self._undecided.discard(commit.transaction.id)
        for released in self._order.removed(commit.group, commit.transaction.id):
            self.apply(self._in_flight[released])

    def unapplied(self) -> list[Commit]:
        """The commits that some participant has yet to apply."""
        return [commit for commit in self._in_flight.values() if commit.is_applying]

    def apply_again(self, commit: Commit, participants: Iterable[TopicIdPartition]) -> None:
        """Some participants may have missed it."""
        finished = self._finished.of(commit.transaction.id.producer_id)
        commit.apply_in(participants, self._find_participant, finished)

    def depose(self, error: FaircopyError) -> None:
        """Another coordinator goes on with all of them."""
        self._is_deposed = True
        for commit in self._in_flight.values():
            commit.give_up(error)
