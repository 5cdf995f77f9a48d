"""Open transactions outlive the broker: what was acknowledged within one is not lost (P9)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.anomalies.words import name_of
from tests.checker.facts import Facts
from tests.checker.history import Result

LONG_AGO = float("-inf")


def given_up(facts: Facts) -> Iterator[str]:
    """The broker gives up an open transaction only if something may be lost. Its client may hear of that in a
    later transaction: until it has committed one that began after the loss.
    """
    begun = dict[str, float]()  # the last one of each client that is committed
    for number, transaction in enumerate(facts.transactions):
        since = begun.get(transaction.process, LONG_AGO)
        if transaction.result is Result.OK:
            begun[transaction.process] = transaction.begun
        told = transaction.given_up
        if told is not None and not any(since < loss <= told for loss in facts.losses):
            yield f"{name_of(facts, number)} was given up, and nothing was lost"
