"""How long no answer came because of a fault, and what was aborted by it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.arbiter.failover.clients import MESSAGES, TRANSACTIONS, Outcome, Unit


@dataclass(frozen=True)
class Round:
    """One fault: when it began, when all was well again, and how many lives came to lead meanwhile."""

    fault: str
    began: float
    healed: float
    lives: int


@dataclass(frozen=True)
class Row:
    """What all rounds of one fault were like. Pauses are in seconds, the median and the longest."""

    fault: str
    rounds: int
    transactions_paused: tuple[float, float]
    messages_paused: tuple[float, float]
    new_lives: int
    aborted: int
    unknown: int


def rows_of(rounds: Iterable[Round], units: Iterable[Unit]) -> list[Row]:
    """One row for each fault, in their order."""
    units = list(units)
    grouped: dict[str, list[Round]] = {}
    for each in rounds:
        grouped.setdefault(each.fault, []).append(each)
    return [row_of(fault, found, units) for fault, found in grouped.items()]


def row_of(fault: str, rounds: list[Round], units: list[Unit]) -> Row:
    """One row."""
    ended = Counter(
        unit.outcome
        for unit in units
        if not unit.wanted and any(each.began <= unit.ended <= each.healed for each in rounds)
    )
    return Row(
        fault,
        len(rounds),
        paused(TRANSACTIONS, rounds, units),
        paused(MESSAGES, rounds, units),
        sum(each.lives for each in rounds),
        ended[Outcome.ABORTED],
        ended[Outcome.UNKNOWN],
    )


def paused(kind: str, rounds: Iterable[Round], units: Iterable[Unit]) -> tuple[float, float]:
    """The median and the longest of the pauses of acks, one in each round."""
    acks = sorted(unit.ended for unit in units if unit.kind == kind and unit.outcome is Outcome.ACKED)
    pauses = [longest_pause(each, acks) for each in rounds]
    return round(median(pauses), 3), round(max(pauses), 3)


def longest_pause(during: Round, acks: Sequence[float]) -> float:
    """The longest time between two acks that overlaps with a fault, in seconds; 0 if there are none."""
    return max(
        (
            after - before
            for before, after in pairwise(acks)
            if after >= during.began and before <= during.healed
        ),
        default=0.0,
    )
