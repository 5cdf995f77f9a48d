"""Mistakes in what a consumer is given."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.checker.history import Operation, Poll, Read


def skip(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A consumer is not given a message between two others."""
    return change_poll(history, chosen, lambda reads: [reads[0], *reads[2:]])


def go_back(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A consumer is given a message again."""
    return change_poll(history, chosen, lambda reads: [reads[0], *reads])


def change_poll(
    history: list[Operation], chosen: random.Random, change: Callable[[list[Read]], list[Read]]
) -> list[Operation] | None:
    polls = [
        number
        for number, operation in enumerate(history)
        if isinstance(operation, Poll) and len({read.partition for read in operation.reads[:3]}) == 1
        if len(operation.reads) > 2
    ]
    if not polls:
        return None
    number = chosen.choice(polls)
    return [
        *history[:number],
        replace(history[number], reads=change(history[number].reads)),
        *history[number + 1 :],
    ]
