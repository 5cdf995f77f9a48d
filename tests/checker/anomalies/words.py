"""How transactions and lists of things are called in explanations."""

from __future__ import annotations

from collections.abc import Iterable

from tests.checker.facts import Facts
from tests.checker.history import Transaction

EXPLAINED_MAX = 8


def name_of(facts: Facts, number: int) -> str:
    transaction: Transaction = facts.transactions[number]
    kind = "plain send" if transaction.group is None else "transaction"
    return f"{kind} {number} of {transaction.process} ({transaction.result.value})"


def listed(things: Iterable[object]) -> str:
    shown = list(things)
    more = f" and {len(shown) - EXPLAINED_MAX} more" if len(shown) > EXPLAINED_MAX else ""
    return ", ".join(str(thing) for thing in shown[:EXPLAINED_MAX]) + more
