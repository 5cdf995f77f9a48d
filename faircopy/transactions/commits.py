"""Commits in flight, from the decision to the last APPLY (docs/ARCHITECTURE.md, Transactions).

PREPARE_COMMIT and every participant's PREPARED are appended in one tick and become durable side by side. Then
the commit is acknowledged. Then APPLY goes to every participant; within a group, in the order in which the
journal decided (P5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from faircopy.copier.fold import NO_RANK, ApplyOrder
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
"""Stands for the commit's own entry among those that must answer before the commit is promised."""


class Commit:
    """One commit in flight. It waits for promises, then for its turn in its group, then until every
    participant has applied it. It may be lost with the process: recovery rebuilds it from the journals.

    `answers` are those to the last message to its participants.
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
        """Append the decision and all promises; once all are durable, the commit can't be lost (I5)."""
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

    def apply_in(
        self, participants: Iterable[TopicIdPartition], find_participant: Participants, finished: int
    ) -> None:
        """Send APPLY to these participants; those that already have it just answer."""
        answers = self.answers
        assert answers is not None
        order = ApplyOrder(finished, self.rank, self.transaction.id)
        for each in participants:
            find_participant(each).apply(self.transaction.id, order, partial(answers.note, each))

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

    def start(self, home: MetadataJournal, transaction: Transaction) -> asyncio.Future[None]:
        """Decide to commit. The future is done once the commit can't be lost."""
        ack: asyncio.Future[None] = self._loop.create_future()
        commit = self._in_flight[transaction.id] = Commit(home, transaction, ack)
        self._order.decided(commit.group, transaction.id)
        finished = self._finished.of(transaction.id.producer_id)
        commit.promise(
            self.promising(transaction), self._find_participant, finished, partial(self._can_be_acked, commit)
        )
        return ack

    def promising(self, transaction: Transaction) -> Iterable[TopicIdPartition]:
        """The participants that must promise before the ack: all of them (I5)."""
        return transaction.participants

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
        finished = self._finished.of(commit.transaction.id.producer_id)
        commit.apply(self._find_participant, finished, partial(self.over, commit))

    def over(self, commit: Commit) -> None:
        """Every participant has applied it."""
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

    def drop(self, commit: Commit) -> None:
        """Drop a commit that is aborted since a promise was lost; later ones of its group go on."""
        del self._in_flight[commit.transaction.id]
        self._undecided.discard(commit.transaction.id)
        for released in self._order.removed(commit.group, commit.transaction.id):
            self.apply(self._in_flight[released])

    def unapplied(self) -> list[Commit]:
        """The commits that some participant has yet to apply."""
        return [commit for commit in self._in_flight.values() if commit.is_applying]

    def apply_again(self, commit: Commit, participants: Iterable[TopicIdPartition]) -> None:
        """Send APPLY again to participants that may have missed it."""
        finished = self._finished.of(commit.transaction.id.producer_id)
        commit.apply_in(participants, self._find_participant, finished)

    def depose(self, error: FaircopyError) -> None:
        """Another coordinator takes over all of them."""
        self._is_deposed = True
        for commit in self._in_flight.values():
            commit.give_up(error)
