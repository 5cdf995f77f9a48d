"""Mistakes in what requests are told."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.checker.history import Committed, End, Operation, Result
from tests.checker.mistakes.changes import change_one, finals, transaction_of, transactions


def forget_a_commit(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """The reported end of a partition does not include what was just committed."""
    return change_one(
        history, chosen, End, lambda end: replace(end, end_offset=end.end_offset - 1), needs_acked
    )


def needs_acked(history: list[Operation], end: Operation) -> bool:
    """Whether the last message of a partition, as far as this end reaches, was acknowledged."""
    assert isinstance(end, End)
    final = next(each for each in finals(history) if each.partition == end.partition)
    return end.end_offset > 0 and (
        transaction_of(history, final.reads[end.end_offset - 1].value).result is Result.OK
    )


def forget_an_offset(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A group's offset is not the committed one."""
    return change_one(history, chosen, Committed, lambda told: replace(told, offset=-1), needs_acked_offset)


def needs_acked_offset(history: list[Operation], told: Operation) -> bool:
    assert isinstance(told, Committed)
    return any(
        transaction.ended <= told.asked and transaction.offsets
        for transaction in transactions(history, Result.OK)
    )


def invent_an_offset(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A group's offset is one that nobody committed."""
    return change_one(history, chosen, Committed, lambda told: replace(told, offset=10**9), lambda *_: True)
