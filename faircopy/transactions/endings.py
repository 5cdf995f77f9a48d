"""The end of a transaction: each participant is told, and when all have it for good, nobody will ask again."""

from __future__ import annotations

import asyncio
import logging

from faircopy.journal.entry import Kind
from faircopy.loop.waiting import tell
from faircopy.partition.participant import Participants
from faircopy.transactions.decisions import prepare_abort
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.transaction import NewEntry, Transaction

log = logging.getLogger(__name__)


class Endings:
    """Ends transactions. Keeps who waits for that, which may die with the process."""

    def __init__(
        self, find_participant: Participants, finished: FinishedNumbers, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._find_participant = find_participant
        self._finished = finished
        self._loop = loop
        self._settled: dict[str, list[asyncio.Future[None]]] = {}

    def committed(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Every participant has applied it."""
        self._end(home, transaction, Kind.COMMITTED)

    def abort(self, home: MetadataJournal, transaction: Transaction, fence_epoch: int, *, untold: bool = False) -> None:
        """Decide for abort, and tell the participants. Nothing waits: what a crash forgets of this is aborted too."""
        home.append(prepare_abort(transaction, fence_epoch, untold=untold))
        self.discard(home, transaction)

    def discard(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Tell the participants of a transaction that it is aborted."""
        participants = list(map(self._find_participant, transaction.participants))
        finished = self._finished.of(transaction.id.producer_id)
        waiting = len(participants)

        def one_has_discarded() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._end(home, transaction, Kind.ABORTED)

        for participant in participants:
            participant.discard(transaction.id, transaction.fence_epoch, finished, one_has_discarded)
        if not participants:
            self._end(home, transaction, Kind.ABORTED)

    def _end(self, home: MetadataJournal, transaction: Transaction, kind: Kind) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "transaction %s of %r is over: %s, %d partition(s)",
                transaction.id, transaction.transactional_id, kind.name, len(transaction.epochs),
            )  # fmt: skip
        home.append(NewEntry(kind, transaction.id, {}))
        producer = home.table.producers[transaction.transactional_id]
        home.journal.when_durable_lazily(self._finished.once_durable(producer))
        if not producer.ending:
            for settled in self._settled.pop(transaction.transactional_id, ()):
                tell(settled)

    def all_over(self, home: MetadataJournal, transactional_id: str) -> asyncio.Future[None]:
        """Done when no transaction of this id is being ended any more."""
        settled: asyncio.Future[None] = self._loop.create_future()
        producer = home.table.producers.get(transactional_id)
        if producer is None or not producer.ending:
            settled.set_result(None)
        else:
            self._settled.setdefault(transactional_id, []).append(settled)
        return settled
