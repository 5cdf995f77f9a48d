"""Histories with a change: another log for a partition, a message less, another result of one operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checker.history import Final, Operation, Read, Result, Send, Transaction, Value

STRANGER = "nobody wrote this"


def everywhere(history: list[Operation], change: Callable[[Read], Read | None]) -> list[Operation]:
    """The history with each read changed or left out."""

    def changed(reads: list[Read]) -> list[Read]:
        return [read for read in map(change, reads) if read is not None]

    return [replace(operation, reads=changed(operation.reads)) for operation in history]


def finals(history: list[Operation]) -> list[Final]:
    return [operation for operation in history if isinstance(operation, Final) and operation.reads]


def transactions(history: list[Operation], result: Result) -> list[Transaction]:
    return [
        operation
        for operation in history
        if isinstance(operation, Transaction) and operation.result is result
    ]


def renumbered(history: list[Operation], partition: str, reads: list[Read]) -> list[Operation]:
    """Return the history with another log for one partition.

    All its readers see the new log, as far as they read.
    """
    log = [Read(partition, offset, read.value) for offset, read in enumerate(reads)]

    def changed(operation: Operation) -> Operation:
        new: list[Read] = []
        for read in operation.reads:
            if read.partition != partition:
                new.append(read)
            elif read.offset < len(log):
                new.append(log[read.offset])
        if isinstance(operation, Final) and operation.partition == partition:
            return Final(partition, 0, len(log), log)
        if isinstance(operation, Transaction):
            # The broker would have acknowledged each message at its new offset.
            offsets = {read.value: read.offset for read in log}
            sends = [
                Send(send.partition, send.value, offsets.get(send.value))
                if send.partition == partition and send.offset is not None
                else send
                for send in operation.sends
            ]
            return replace(operation, reads=new, sends=sends)
        return replace(operation, reads=new)

    return [changed(operation) for operation in history]


def without(history: list[Operation], value: Value) -> list[Operation]:
    for final in finals(history):
        kept = [read for read in final.reads if read.value != value]
        if len(kept) < len(final.reads):
            return renumbered(history, final.partition, kept)
    return history


def transaction_of(history: list[Operation], value: Value) -> Transaction:
    return next(
        operation
        for operation in history
        if isinstance(operation, Transaction) and any(send.value == value for send in operation.sends)
    )


def change_one(
    history: list[Operation],
    chosen: random.Random,
    kind: type[Any],
    change: Callable[[Any], Operation],
    fits: Callable[[list[Operation], Operation], bool],
) -> list[Operation] | None:
    numbers = [
        n for n, operation in enumerate(history) if isinstance(operation, kind) and fits(history, operation)
    ]
    if not numbers:
        return None
    number = chosen.choice(numbers)
    return [*history[:number], change(history[number]), *history[number + 1 :]]
