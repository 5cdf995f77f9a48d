"""What befalls a transactional producer: another instance of it, and the timeout of its transaction."""

from __future__ import annotations

from typing import cast

from faircopy.faults.fault import BadFault
from faircopy.serving.parts import Parts
from faircopy.transactions import decisions
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.transaction import NOBODY, Producer


class ExpiringCoordinator(TransactionCoordinator):
    """A coordinator that aborts a transaction as if its timeout were over."""

    def expire(self, transactional_id: str) -> bool:
        """Abort the open transaction, and fence its producer. False if none is open."""
        home = self.journal_of(transactional_id)
        producer = home.table.producers.get(transactional_id)
        if producer is None or producer.current is None:
            return False
        self._append_fence(home, producer, decisions.expire(producer, self._clock.steady_ms()))
        return True


async def fence(parts: Parts, transactional_id: str | None, connection: int) -> None:
    """Fence a producer, as InitProducerId of another instance does. Raises BadFault, TransactionRefused."""
    coordinator = parts.shards.coordinator_of(transactional_id or "")
    _, producer = _known(coordinator, transactional_id)
    await coordinator.init_producer(
        producer.transactional_id, producer.timeout_ms, NOBODY, NOBODY, connection
    )


async def expire(parts: Parts, transactional_id: str | None) -> None:
    """Abort what a producer has open, as the timeout does. Raises BadFault."""
    coordinator = cast(ExpiringCoordinator, parts.shards.coordinator_of(transactional_id or ""))
    home, producer = _known(coordinator, transactional_id)
    if not coordinator.expire(producer.transactional_id):
        raise BadFault(f"{transactional_id!r} has no open transaction that could time out")
    await home.journal.durable()


def with_open_transactions(parts: Parts) -> list[str]:
    """The transactional ids that have an open transaction."""
    return [
        transactional_id
        for home in parts.shards.metadata_journals()
        for transactional_id, producer in home.table.producers.awake.items()
        if producer.current is not None
    ]


def _known(
    coordinator: TransactionCoordinator, transactional_id: str | None
) -> tuple[MetadataJournal, Producer]:
    """The journal of a transactional id, and its producer."""
    home = coordinator.journal_of(transactional_id or "")
    producer = home.table.producers.get(transactional_id or "")
    if producer is None:
        raise BadFault(f"there is no producer with the transactional id {transactional_id!r}")
    return home, producer
