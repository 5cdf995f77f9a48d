"""Mistakes in plain tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.checker.history import Operation, Read, Snapshot
from tests.checker.mistakes.changes import change_one, transaction_of


def tear_a_snapshot(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table holds a part of a transaction, or of a plain send that it may not divide."""
    for number, operation in enumerate(history):
        if isinstance(operation, Snapshot) and operation.reads:
            values = {read.value for read in operation.reads}
            for read in chosen.sample(operation.reads, len(operation.reads)):
                torn = transaction_of(history, read.value)
                if torn.group is None and operation.divides_plain:
                    continue
                if sum(send.value in values for send in torn.sends) > 1:
                    kept = [each for each in operation.reads if each.value != read.value]
                    return [*history[:number], replace(operation, reads=kept), *history[number + 1 :]]
    return None


def show_a_row_twice(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table holds a message twice."""

    def with_one_again(table: Snapshot) -> Snapshot:
        return replace(table, reads=[*table.reads, table.reads[0]])

    return change_one(history, chosen, Snapshot, with_one_again, has_rows)


def has_rows(_history: list[Operation], snapshot: Operation) -> bool:
    """Whether there is anything in a table."""
    return bool(snapshot.reads)


def leave_out_the_first(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table lacks the first transaction of a partition, and has later ones."""
    return leave_out(history, chosen, lambda reads: [reads[0]])


def leave_out_any(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table lacks a transaction, and has later ones."""
    return leave_out(history, chosen, lambda reads: reads)


def leave_out(
    history: list[Operation], chosen: random.Random, may_go: Callable[[list[Read]], list[Read]]
) -> list[Operation] | None:
    """The history with a table that lacks the transaction of one of these reads, as a whole."""
    for number, operation in enumerate(history):
        if not isinstance(operation, Snapshot) or not operation.reads:
            continue
        left_out = transaction_of(history, chosen.choice(may_go(operation.reads)).value)
        values = {send.value for send in left_out.sends}
        kept = [read for read in operation.reads if read.value not in values]
        gone = [read for read in operation.reads if read.value in values]
        if any(read.partition == other.partition and read > other for read in kept for other in gone):
            return [*history[:number], replace(operation, reads=kept), *history[number + 1 :]]
    return None
