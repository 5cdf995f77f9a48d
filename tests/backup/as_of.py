"""What a history says of a broker that is put back to a moment in the middle of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.checker.history import Operation, Poll, Result, Transaction


def as_of(operations: Iterable[Operation], asked: float, made: float) -> Iterator[Operation]:
    """Yield the operations as the restored broker must have them.

    The backup has all that was acknowledged when it was asked for, and nothing that was asked for after it
    was made. Of what was under way between the two, nobody knows.
    """
    for operation in operations:
        if isinstance(operation, Transaction):
            yield transaction_as_of(operation, asked, made)
        elif isinstance(operation, Poll) and operation.time <= asked:
            yield operation


def transaction_as_of(transaction: Transaction, asked: float, made: float) -> Transaction:
    if transaction.ended <= asked or transaction.result is Result.FAILED:
        return transaction
    # It may have got its offsets after the moment of the backup: then others may have them when restored.
    sends = [send._replace(offset=None) for send in transaction.sends]
    if transaction.commit_asked is not None and transaction.commit_asked <= made:
        # What it has read may have been committed after that moment.
        return replace(transaction, result=Result.UNKNOWN, sends=sends, reads=[])
    return replace(transaction, result=Result.FAILED, sends=sends, reads=[], offsets=[])
