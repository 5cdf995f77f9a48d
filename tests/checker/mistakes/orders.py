"""Mistakes of order between transactions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.checker.history import Operation, Transaction
from tests.checker.mistakes.changes import finals, renumbered, transaction_of


def swap_in_group(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two transactions of a group have different orders in two partitions."""
    return swap(history, chosen, lambda first, second: first.group == second.group)


def swap_across_groups(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two transactions of different groups have different orders in two partitions."""
    return swap(history, chosen, lambda first, second: first.group != second.group)


def swap(
    history: list[Operation], chosen: random.Random, may_swap: Callable[[Transaction, Transaction], bool]
) -> list[Operation] | None:
    for final in chosen.sample(finals(history), len(finals(history))):
        for at in chosen.sample(range(len(final.reads) - 1), len(final.reads) - 1):
            first, second = (transaction_of(history, read.value) for read in final.reads[at : at + 2])
            if may_swap(first, second) and is_ordered_elsewhere(first, second, final.partition):
                reads = [*final.reads[:at], final.reads[at + 1], final.reads[at], *final.reads[at + 2 :]]
                return renumbered(history, final.partition, reads)
    return None


def is_ordered_elsewhere(first: Transaction, second: Transaction, here: str) -> bool:
    """Whether another partition holds both of two transactions."""
    shared = {send.partition for send in first.sends} & {send.partition for send in second.sends} - {here}
    return first is not second and None not in (first.group, second.group) and bool(shared)


def read_the_future(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A transaction reads what a later one in its partition wrote."""
    for final in chosen.sample(finals(history), len(finals(history))):
        for early, late in zip(final.reads, final.reads[1:], strict=False):
            reader = transaction_of(history, early.value)
            if transaction_of(history, late.value) is not reader:
                return [
                    replace(operation, reads=[*operation.reads, late]) if operation is reader else operation
                    for operation in history
                ]
    return None
