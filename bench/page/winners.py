"""The fastest protocols according to the model, in each case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bench.results import Distance

# Plain messages promise less, so they do not take part.
WITHOUT_TRANSACTIONS = "none"
# Protocols are level when the model's difference is less than this.
LEVEL = 1.005


class DistanceCase(NamedTuple):
    """Distance, disk and size of a transaction, with or without replicas."""

    is_replicated: bool
    round_trip_ms: float
    durable_write_ms: float
    partitions: int


class Ranked(NamedTuple):
    """One protocol and its time."""

    protocol: str
    milliseconds: float


def ranking(rows: Iterable[Distance], *, by_visible: bool = False) -> dict[DistanceCase, list[Ranked]]:
    """The transactional protocols in each case, fastest first, by commit latency or by visibility."""
    found: dict[DistanceCase, list[Ranked]] = {}
    for row in rows:
        if row.protocol != WITHOUT_TRANSACTIONS:
            case = DistanceCase(row.is_replicated, row.round_trip_ms, row.durable_write_ms, row.partitions)
            found.setdefault(case, []).append(
                Ranked(row.protocol, row.visible_ms if by_visible else row.commit_ms)
            )
    return {case: sorted(ranked, key=lambda each: each.milliseconds) for case, ranked in found.items()}


def winners(ranked: list[Ranked]) -> list[Ranked]:
    """The fastest, and those that are level with it."""
    return [each for each in ranked if each.milliseconds <= ranked[0].milliseconds * LEVEL]
