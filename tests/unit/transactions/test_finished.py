"""Participants forget only what the coordinator never asks for again, even after a loss of power."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.journal.entry import Kind
from faircopy.transactions import decisions
from faircopy.transactions.finished import NOTHING_FINISHED, FinishedNumbers
from faircopy.transactions.state import TransactionState
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry
from tests.many import many
from tests.unit.transactions.names import participant

STEPS = many(st.integers(0, 2), 40)
"""Each is one of the steps that can be taken by then."""


@settings(max_examples=500)
@given(STEPS)
def test_what_is_not_over_durably_is_never_finished(steps: list[int]) -> None:
    table, finished = TransactionTable(), FinishedNumbers()
    table.producers.on_wake, table.producers.on_sleep = finished.wakes, finished.falls_asleep
    table.fold(decisions.fence("orders/a", 1, 0, 60_000, 0), 0)
    producer = table.producers["orders/a"]
    number, waiting, needed = 10, list[Callable[[], None]](), set[int]()
    ended_since_sync: set[int] = set()
    for position, chosen in enumerate(steps, start=1):
        possible = [
            "sync",
            "begin" if producer.current is None else "end",
            *(["finish"] if producer.ending else []),
        ]
        step = possible[chosen % len(possible)]
        if step == "begin":
            number += 3  # numbers are the coordinator's, not the producer's
            needed.add(number)
            for entry in decisions.add(producer, {participant(0): 1}, number, 0):
                table.fold(entry, position)
        elif step == "end":
            decided = decisions.end(producer, 0, commit=True)
            assert decided is not None
            table.fold(decided, position)
        elif step == "finish":
            transaction = next(iter(producer.ending.values()))
            assert transaction.state is TransactionState.PREPARE_COMMIT
            table.fold(NewEntry(Kind.COMMITTED, transaction.id, {}), position)
            ended_since_sync.add(transaction.id.number)
            waiting.append(finished.once_durable(producer))
        else:
            needed -= ended_since_sync
            ended_since_sync.clear()
            for durable in waiting:
                durable()
            waiting.clear()
            table.producers.sleep(undurable=())
        if "orders/a" not in table.producers.awake:
            assert finished.of(1) == NOTHING_FINISHED, "nothing is kept, and nobody asks"
        assert all(finished.of(1) < each for each in needed)
    if not needed:
        table.producers.wake("orders/a")
        assert finished.of(1) >= producer.last_number, "and in the end all is forgotten"
