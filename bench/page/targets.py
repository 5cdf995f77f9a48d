"""What faircopy aims at against Apache Kafka with its own defaults, and whether a run met it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.results import AbortCost, Histogram, Latency, Results, Stall, Start, Throughput

KAFKA = "kafka"
DURABILITIES = ("fsync", "os")
KIB = 1024
PACE_MS = 50

Figure = Callable[[Results, str], float | None]


@dataclass(frozen=True)
class Target:
    """One figure of faircopy under one durability, beside Kafka's. Figures that were not measured are None.

    `floor` is what the same broker shows without a commit protocol: client, network and loop by themselves.
    What is held against the limit is `ratio`: to Kafka's figure, or to what `aim` says. `verdict` is met, missed or not
    measured.
    """

    figure: str
    durability: str
    unit: str
    ours: float | None
    kafka: float | None
    floor: float | None
    ratio: float | None
    aim: str
    verdict: str


@dataclass(frozen=True)
class Goal:
    """What is aimed at: limits are of the ratio, for fsync and for os."""

    figure: str
    unit: str
    measure: Figure
    is_at_most: bool
    limits: tuple[float, float]
    of: str = "Kafka's"
    reference: Figure | None = None
    has_floor: bool = False


def targets(results: Results) -> list[Target]:
    """All targets, each under both durabilities."""
    return [
        target(results, goal, durability, limit)
        for goal in GOALS
        for durability, limit in zip(DURABILITIES, goal.limits, strict=True)
    ]


def target(results: Results, goal: Goal, durability: str, limit: float) -> Target:
    """One goal under one durability."""
    system = f"local-copy {durability}"
    ours, kafka = goal.measure(results, system), goal.measure(results, KAFKA)
    ratio = ratio_of(ours, goal.reference(results, system) if goal.reference else kafka)
    floor = goal.measure(results, f"none {durability}") if goal.has_floor else None
    aim = f"at {'most' if goal.is_at_most else 'least'} {limit_text(limit, goal.of)}"
    outcome = verdict(ratio, limit, goal.is_at_most)
    return Target(goal.figure, durability, goal.unit, ours, kafka, floor, ratio, aim, outcome)


def ratio_of(ours: float | None, reference: float | None) -> float | None:
    if ours is None or not reference:
        return None
    return ours / reference


def verdict(ratio: float | None, limit: float, is_at_most: bool) -> str:
    if ratio is None:
        return "not measured"
    return "met" if (ratio <= limit if is_at_most else ratio >= limit) else "missed"


def limit_text(limit: float, of: str) -> str:
    """Such as "1/3 of Kafka's", "1.5 times Kafka's"."""
    if limit >= 1:
        return f"{limit:g} times {of}"
    is_simple = math.isclose(1 / limit, round(1 / limit))
    return f"1/{1 / limit:.0f} of {of}" if is_simple else f"{limit:g} of {of}"


# -- figures: each takes the results and a system -------------------------------------------------------------------


def row_of(results: Results, kind: type[Any], system: str, **where: int) -> Any | None:
    """The first row of a system that is about this."""
    for row in results.of(kind):
        if row.system == system and all(getattr(row, name) == value for name, value in where.items()):
            return row
    return None


def of_some(histogram: Histogram, percentile: str) -> float | None:
    """A percentile; None of nothing at all, whose percentiles are zero and would win."""
    return float(getattr(histogram, percentile)) if histogram.count else None


def latency_ms(which: str, percentile: str, pause_ms: int = 0) -> Figure:
    """A figure of transactions over four partitions by one producer, who pauses so long between two."""

    def measure(results: Results, system: str) -> float | None:
        row = row_of(results, Latency, system, partitions=4, producers=1, pause_ms=pause_ms)
        return row and of_some(getattr(row, which), percentile)

    return measure


def stalled_p99_ms(results: Results, system: str) -> float | None:
    row = row_of(results, Stall, system)
    return row and of_some(row.during, "p99_ms")


def unstalled_p99_ms(results: Results, system: str) -> float | None:
    row = row_of(results, Stall, system)
    return row and of_some(row.before, "p99_ms")


def produced_mb_per_second(results: Results, system: str, commit_every_ms: int = 0) -> float | None:
    row = row_of(results, Throughput, system, commit_every_ms=commit_every_ms, message_bytes=KIB)
    return row and statistics.median(row.produced_bytes_per_second) / 1e6


def committed_mb_per_second(results: Results, system: str) -> float | None:
    """The same with a commit each 100 ms."""
    return produced_mb_per_second(results, system, 100)


def overhead_percent(results: Results, system: str) -> float | None:
    """By how much a commit each 100 ms slows one producer down."""
    with_commits, plain = committed_mb_per_second(results, system), produced_mb_per_second(results, system)
    return 100 * (1 - with_commits / plain) if with_commits and plain else None


def hundred_percent(results: Results, system: str) -> float:
    return 100.0


def transactions_per_second(results: Results, system: str) -> float | None:
    row = row_of(results, Latency, system, partitions=1, producers=1, pause_ms=0)
    return row and statistics.median(row.per_second)


def rows_per_second(results: Results, system: str) -> float | None:
    row = row_of(results, AbortCost, system, aborted_percent=50)
    return row and row.delivered / statistics.median(row.seconds)


def idle_mib(results: Results, system: str) -> float | None:
    row = row_of(results, Start, system)
    return row and row.idle_memory_bytes / 2**20


def loaded_mib(results: Results, system: str) -> float | None:
    peaks = [row.peak_memory_bytes for row in results.of(Throughput) if row.system == system]
    return max(peaks) / 2**20 if peaks else None


GOALS = [
    *(
        Goal(
            f"{figure}, {percentile}",
            "ms",
            latency_ms(which, f"{percentile}_ms", pause_ms),
            True,
            limits,
            has_floor=True,
        )
        for figure, which, pause_ms in (
            ("commit call to ack, 4 partitions", "commit_to_ack", 0),
            (f"the same, {PACE_MS} ms after the last", "commit_to_ack", PACE_MS),
            ("the same, flushed before the call", "flushed_commit_to_ack", 0),
        )
        for percentile, limits in (("p50", (1 / 3, 1 / 5)), ("p99", (1 / 2, 1 / 3)))
    ),
    Goal(
        "end to end in transactions of 4 partitions, p50",
        "ms",
        latency_ms("end_to_end", "p50_ms"),
        True,
        (1 / 2, 1 / 3),
        has_floor=True,
    ),
    Goal(
        "others' delivery while a transaction hangs, p99",
        "ms",
        stalled_p99_ms,
        True,
        (1.05, 1.05),
        "its own before",
        unstalled_p99_ms,
    ),
    Goal("plain produce, messages of 1 KiB", "MB/s", produced_mb_per_second, False, (0.7, 1.2)),
    Goal(
        "what a commit each 100 ms costs a producer",
        "%",
        overhead_percent,
        True,
        (1 / 10, 1 / 10),
        "its speed without",
        hundred_percent,
    ),
    Goal("transactions of one message, one producer", "1/s", transactions_per_second, False, (3, 5), has_floor=True),
    Goal("committed rows read, 50 % aborted", "rows/s", rows_per_second, False, (1.5, 1.5)),
    Goal("memory when idle", "MiB", idle_mib, True, (1 / 4, 1 / 4)),
    Goal("memory under load, peak", "MiB", loaded_mib, True, (1 / 4, 1 / 4)),
]
