"""The end of a transaction: every participant is told, and once all have it durably, nobody asks again.

An abort closes the transaction at once. But participants are told only once the decision is written, and
whoever asked waits for that, too (`Journal.kept`): what a kill may take must not have been said. Otherwise
the transaction would go on after a restart, with drafts that are dropped already, or although its client was
told that it is aborted (P9). For a transaction that may go on after a loss of power, "written" is "fsynced".
In a set, either is so on other replicas, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from faircopy.errors import FaircopyError
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.waiting import tell
from faircopy.partition.participant import Participants
from faircopy.transactions.answers import Answers
from faircopy.transactions.decisions import prepare_abort
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.transaction import NewEntry, Transaction

log = logging.getLogger(__name__)


class Endings:
    """Ends transactions. Its state, the requests that wait for that, may be lost with the process."""

    def __init__(
        self, find_participant: Participants, finished: FinishedNumbers, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._find_participant = find_participant
        self._finished = finished
        self._loop = loop
        self._settled: dict[str, list[asyncio.Future[None]]] = {}
        self._unwritten: set[TransactionId] = set()
        self._discarding: dict[TransactionId, Answers[TopicIdPartition]] = {}
        self._deposed: FaircopyError | None = None

    def committed(self, home: MetadataJournal, transaction: Transaction) -> None:
        """End a transaction that every participant has applied."""
        self._end(home, transaction, Kind.COMMITTED)

    def abort(
        self, home: MetadataJournal, transaction: Transaction, fence_epoch: int, *, untold: bool = False
    ) -> None:
        """Decide to abort, and tell the participants once that is written."""
        united = list(transaction.united)
        home.append(prepare_abort(transaction, fence_epoch, untold=untold))
        for each in united:
            self.discard(home, each)

    def discard(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Close a transaction that was just decided to be aborted, and tell its participants once that is
        written.
        """
        participants = transaction.participants
        self._discarding[transaction.id] = Answers(participants, partial(self._discarded, home, transaction))
        for each in participants:
            self._find_participant(each).close_transaction(transaction.id)
        self._unwritten.add(transaction.id)
        home.when_safe(partial(self._written, home, transaction), is_durable=transaction.needs_durable)

    def _written(self, home: MetadataJournal, transaction: Transaction) -> None:
        """The decision to abort survives a kill now."""
        if self._deposed is not None:
            return
        self._unwritten.discard(transaction.id)
        participants = transaction.participants
        self.discard_in(transaction, participants)
        if not participants:
            self._discarded(home, transaction)

    def discard_in(self, transaction: Transaction, participants: Iterable[TopicIdPartition]) -> None:
        """Tell these participants, unless that is yet to come; those that already know just answer."""
        if transaction.id in self._unwritten:
            return
        answers = self._discarding[transaction.id]
        finished = self._finished.of(transaction.id.producer_id)
        for each in participants:
            participant = self._find_participant(each)
            participant.discard(
                transaction.id, transaction.fence_epoch, finished, partial(answers.note, each)
            )

    def _discarded(self, home: MetadataJournal, transaction: Transaction) -> None:
        """End a transaction that every participant has discarded."""
        del self._discarding[transaction.id]
        self._end(home, transaction, Kind.ABORTED)

    def _end(self, home: MetadataJournal, transaction: Transaction, kind: Kind) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "transaction %s of %r is over: %s, %d partition(s)",
                transaction.id, transaction.transactional_id, kind.name, len(transaction.epochs),
            )  # fmt: skip
        united = list(transaction.united)
        home.append(NewEntry(kind, transaction.id, {}))
        for each in united:
            self._note_over(home, each)

    def _note_over(self, home: MetadataJournal, transaction: Transaction) -> None:
        producer = home.table.producers.get(transaction.transactional_id)
        if producer is None:  # a member of a joint group, which has done its work
            self._finished.forget(transaction.id.producer_id)
        else:
            home.journal.when_durable_without_sync(self._finished.once_durable(producer))
        if producer is None or not producer.ending:
            for settled in self._settled.pop(transaction.transactional_id, ()):
                tell(settled)

    def all_over(self, home: MetadataJournal, transactional_id: str) -> asyncio.Future[None]:
        """Done once no transaction of this id is still being ended."""
        settled: asyncio.Future[None] = self._loop.create_future()
        if self._deposed is not None:
            settled.set_exception(self._deposed)
            return settled
        producer = home.table.producers.get(transactional_id)
        if producer is None or not producer.ending:
            settled.set_result(None)
        else:
            self._settled.setdefault(transactional_id, []).append(settled)
        return settled

    def depose(self, error: FaircopyError) -> None:
        """Another coordinator takes over all of them: fail all waiting requests with `error`."""
        self._deposed = error
        for answers in self._discarding.values():
            answers.close()
        for settled in (each for waiting in self._settled.values() for each in waiting):
            if not settled.done():
                settled.set_exception(error)
                settled.exception()  # nobody may be waiting any more
