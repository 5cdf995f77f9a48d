"""Which transactions are past their timeout: nobody is missed, though not all are looked at each time."""

from __future__ import annotations

from faircopy.journal.entry import TransactionId
from faircopy.transactions import decisions
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.timeouts import Timeouts
from faircopy.transactions.transaction import NewEntry
from tests.unit.transactions.names import participant


class Bench:
    """A table, and what looks for timeouts in it."""

    def __init__(self) -> None:
        self.table = TransactionTable()
        self.timeouts = Timeouts()
        self._number = 0

    def append(self, entry: NewEntry | None) -> None:
        assert entry is not None
        self.table.fold(entry, 0)

    def begin(self, name: str, producer_id: int, timeout_ms: int) -> TransactionId:
        """A producer that has a transaction open since 1,000."""
        self._number += 1
        self.append(decisions.fence(name, producer_id, 0, timeout_ms, 1_000))
        producer = self.table.producers[name]
        for entry in decisions.add(producer, {participant(0): 1}, self._number, 1_000):
            self.append(entry)
        assert producer.current is not None
        self.timeouts.note(producer.current)
        return producer.current.id

    def expired(self, now_ms: int) -> list[TransactionId]:
        found = self.timeouts.expired([self.table], now_ms)
        return [producer.current.id for producer in found if producer.current is not None]


def test_a_transaction_with_an_earlier_deadline_expires_first() -> None:
    """Nobody looks for the expired before the first deadline: a new, earlier one must not be missed."""
    bench = Bench()
    long = bench.begin("orders/a", 1, 60_000)
    assert bench.expired(1_100) == []
    short = bench.begin("orders/b", 2, 500)
    assert bench.expired(1_500) == []
    assert bench.expired(1_501) == [short]
    assert bench.expired(1_502) == [short], "until it is ended"
    assert bench.expired(61_001) == [long, short]


def test_prepared_transactions_do_not_expire() -> None:
    bench = Bench()
    transaction = bench.begin("orders/a", 1, 60_000)
    assert bench.expired(61_000) == []
    assert bench.expired(61_001) == [transaction]
    bench.append(decisions.end(bench.table.producers["orders/a"], 0, commit=True))
    assert bench.expired(10**9) == []


def test_after_a_restart_the_first_look_is_at_all() -> None:
    bench = Bench()
    transaction = bench.begin("orders/a", 1, 500)
    bench.timeouts = Timeouts()
    assert bench.expired(1_501) == [transaction]
