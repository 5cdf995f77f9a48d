"""Mistakes of place: messages that stand where they should not."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.checker.history import Final, Operation, Poll, Read, Result
from tests.checker.mistakes.changes import (
    STRANGER,
    everywhere,
    finals,
    renumbered,
    transaction_of,
    transactions,
)


def hold_two_values(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """One reader sees another value at an offset."""
    polls = [
        number for number, operation in enumerate(history) if isinstance(operation, Poll) and operation.reads
    ]
    if not polls:
        return None
    number = chosen.choice(polls)
    poll = history[number]
    reads = [poll.reads[0]._replace(value=STRANGER), *poll.reads[1:]]
    return [*history[:number], replace(poll, reads=reads), *history[number + 1 :]]


def duplicate(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message is copied twice."""
    final = chosen.choice(finals(history))
    at = chosen.randrange(len(final.reads))
    return renumbered(history, final.partition, [*final.reads[: at + 1], *final.reads[at:]])


def invent(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message appears that nobody wrote."""
    final = chosen.choice(finals(history))
    at = chosen.randrange(len(final.reads))
    return renumbered(history, final.partition, [*final.reads[:at], Read("", 0, STRANGER), *final.reads[at:]])


def misplace(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message of unknown fate appears in another partition than the one it was sent to."""
    visible = {read.value for final in finals(history) for read in final.reads}
    lost = [
        send
        for operation in transactions(history, Result.UNKNOWN)
        for send in operation.sends
        if send.value not in visible
    ]
    if not lost:
        return None
    send = chosen.choice(lost)
    final = chosen.choice([each for each in finals(history) if each.partition != send.partition])
    return renumbered(history, final.partition, [*final.reads, Read("", 0, send.value)])


def turn(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two messages of a transaction swap places."""
    for final in chosen.sample(finals(history), len(finals(history))):
        for at in range(len(final.reads) - 1):
            first, second = (transaction_of(history, read.value) for read in final.reads[at : at + 2])
            if first is second:
                reads = [*final.reads[:at], final.reads[at + 1], final.reads[at], *final.reads[at + 2 :]]
                return renumbered(history, final.partition, reads)
    return None


def leave_a_gap(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """An offset is left unused."""
    final = chosen.choice(finals(history))
    at = chosen.choice(final.reads).offset

    def moved(read: Read) -> Read:
        follows = read.partition == final.partition and read.offset >= at
        return read._replace(offset=read.offset + 1) if follows else read

    grown = everywhere(history, moved)
    return [
        replace(operation, end_offset=operation.end_offset + 1)
        if isinstance(operation, Final) and operation.partition == final.partition
        else operation
        for operation in grown
    ]
