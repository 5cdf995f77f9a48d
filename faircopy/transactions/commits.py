"""Commits in flight, from the decision to the last APPLY (docs/ARCHITECTURE.md, Commit).

PREPARE_COMMIT and every participant's PREPARED are appended in one tick and become durable side by side; then the ack;
then APPLY goes to every participant, in the order in which the journal decided within a group (P5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from faircopy.copier.fold import NO_RANK
from faircopy.journal.entry import TransactionId
from faircopy.loop.waiting import tell
from faircopy.partition.participant import Participant, Participants
from faircopy.transactions.decisions import prepare_commit
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.transaction import Transaction, group_of

Applied = Callable[[MetadataJournal, Transaction], None]


class Commit:
    """One commit: first it waits for promises, then for its turn in its group, then until each participant has applied
    it. May die with the process: recovery makes it again from what the journals hold.
    """

    __slots__ = ("_promised", "_waiting", "ack", "home", "rank", "transaction")

    def __init__(
        self,
        home: MetadataJournal,
        transaction: Transaction,
        ack: asyncio.Future[None] | None,
        promised: Callable[[Commit], None],
    ) -> None:
        self.home = home
        self.transaction = transaction
        self.ack = ack
        self.rank = NO_RANK
        self._promised = promised
        self._waiting = 0

    @property
    def group(self) -> str:
        """The group of its transactional id: commits of one group are applied in order."""
        return group_of(self.transaction.transactional_id)

    def promise(self, participants: list[Participant], finished: int) -> None:
        """Append the decision and all promises; when all are durable the commit can't be lost (I5)."""
        self._waiting = len(participants) + 1
        self.home.append(prepare_commit(self.transaction))
        for participant in participants:
            participant.prepare(self.transaction.id, finished, self._one_is_durable)
        self.home.journal.when_durable(self._one_is_durable)

    def _one_is_durable(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._promised(self)

    def apply(self, participants: list[Participant], finished: int, applied: Applied) -> None:
        """Send APPLY to every participant, in one tick, so that every tick is a consistent cut."""
        self._waiting = len(participants)

        def one_has_applied() -> None:
            self._waiting -= 1
            if not self._waiting:
                applied(self.home, self.transaction)

        for participant in participants:
            participant.apply(self.transaction.id, finished, self.rank, one_has_applied)
        if not participants:
            applied(self.home, self.transaction)


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

    def start(self, home: MetadataJournal, transaction: Transaction) -> asyncio.Future[None]:
        """Decide for commit. What is returned is done when the commit can't be lost."""
        ack: asyncio.Future[None] = self._loop.create_future()
        commit = self._in_flight[transaction.id] = Commit(home, transaction, ack, self._can_be_acked)
        self._order.decided(commit.group, transaction.id)
        commit.promise(self.promising(transaction), self._finished.of(transaction.id.producer_id))
        return ack

    def promising(self, transaction: Transaction) -> list[Participant]:
        """Who has to promise before the ack: every participant (I5)."""
        return list(map(self._find_participant, transaction.participants))

    def ack_of(self, transaction: TransactionId) -> asyncio.Future[None] | None:
        """What a repeated EndTxn waits for; None if there is nothing to wait for any more."""
        commit = self._in_flight.get(transaction)
        return commit.ack if commit is not None else None

    def _can_be_acked(self, commit: Commit) -> None:
        if commit.ack is not None:
            tell(commit.ack)
        for released in self._released(commit):
            # The ack is written in the loop's next tick: nothing that follows is to stand in its way.
            self._loop.call_soon(self._loop.call_soon, self.apply, released)

    def _released(self, commit: Commit) -> list[Commit]:
        """Those that may be applied now, in the order of their group."""
        released = self._order.durable(commit.group, commit.transaction.id)
        return [self._in_flight.pop(transaction) for transaction in released]

    def apply(self, commit: Commit) -> None:
        """Have a commit applied, after all that were applied before (its rank)."""
        if commit.rank == NO_RANK:
            commit.rank = self._ranks.take()
        transaction = commit.transaction
        participants = list(map(self._find_participant, transaction.participants))
        commit.apply(participants, self._finished.of(transaction.id.producer_id), self._applied)

    # -- after a crash -------------------------------------------------------------------------------------------

    def found(self, home: MetadataJournal, transaction: Transaction, *, is_promised: bool) -> Commit:
        """A commit that was decided before a crash; call in the journal's order. If not all promises are known to be
        held, it waits until what can't say is repaired, and its group's later ones with it (P5).
        """
        commit = self._in_flight[transaction.id] = Commit(home, transaction, None, self._can_be_acked)
        self._order.decided(commit.group, transaction.id)
        if not is_promised:
            self._undecided.add(transaction.id)
        return commit

    def go_on(self, commit: Commit) -> None:
        """Apply what was promised, once all before it in its group are."""
        for released in self._released(commit):
            self.apply(released)

    def is_undecided(self, transactions: Iterable[TransactionId]) -> bool:
        """Whether of one of these it is not known if it is committed."""
        return not self._undecided.isdisjoint(transactions)
