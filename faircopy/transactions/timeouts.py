"""Which open transactions are past their timeout, and which transactional ids are idle."""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import Producer, Transaction

NEVER_MS = 1 << 62


class Timeouts:
    """Looks for transactions past their timeout, and goes over all of them only when one may be.

    May be lost with the process: the first look after a start goes over all. Times are of the steady clock.
    """

    def __init__(self) -> None:
        self._next_ms = 0

    def note(self, transaction: Transaction) -> None:
        """Note that a transaction has begun."""
        self._next_ms = min(self._next_ms, transaction.deadline_ms)

    def expired(self, tables: Iterable[TransactionTable], now_ms: int) -> list[Producer]:
        """Producers whose open transaction is past its timeout. Prepared ones never expire."""
        if now_ms <= self._next_ms:
            return []
        busy = [
            producer
            for table in tables
            for producer in table.producers.awake.values()
            if producer.current is not None
        ]
        # Expired transactions are looked at again until they are ended.
        self._next_ms = min((deadline_ms(producer) for producer in busy), default=NEVER_MS)
        return [producer for producer in busy if now_ms > deadline_ms(producer)]


def deadline_ms(producer: Producer) -> int:
    """When its open transaction times out."""
    assert producer.current is not None
    return producer.current.deadline_ms


def idle(table: TransactionTable, now_ms: int, idle_ms: int) -> list[Producer]:
    """The producers whose transactional ids nobody has used for `idle_ms`."""
    return table.producers.last_used_before(now_ms - idle_ms)
