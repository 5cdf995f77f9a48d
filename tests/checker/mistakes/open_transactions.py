"""Mistakes with open transactions."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.checker.history import Loss, Operation, Result, Transaction
from tests.checker.mistakes.changes import change_one


def give_up(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A transaction is given up, although nothing was lost."""
    without_losses: list[Operation] = [each for each in history if not isinstance(each, Loss)]

    def given_up(transaction: Transaction) -> Transaction:
        return replace(transaction, given_up=transaction.ended)

    return change_one(without_losses, chosen, Transaction, given_up, has_failed)


def has_failed(_history: list[Operation], operation: Operation) -> bool:
    return isinstance(operation, Transaction) and operation.result is Result.FAILED
