"""The targets of faircopy compared with Apache Kafka with its own defaults, and whether a run met them.

If the client's own time is most of a figure, the aim is a multiple of the floor, which is the time that the
same client takes with the same broker without a commit protocol. A fraction of Kafka's figure could be less
than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.page.figures import (
    PARALLEL_SYNC,
    Figure,
    durability_of,
    floor_and_sync,
    floor_of,
    hundred_percent,
    idle_mib,
    latency_ms,
    loaded_mib,
    overhead_percent,
    produced_mb_per_second,
    rows_per_second,
    stalled_p99_ms,
    tool_latency_ms,
    tools_cpu_seconds,
    tools_mib,
    transactions_per_second,
    unstalled_p99_ms,
)
from bench.page.spark_figures import (
    batch_rows_per_second,
    live_p50_ms,
    sink_overhead_percent,
    stream_rows_per_second,
    written_per_second,
)
from bench.results import Results

KAFKA = "kafka"
PACE_MS = 50
NEAR = 1.2  # the aim where the client is the floor


@dataclass(frozen=True)
class Target:
    """One figure of faircopy under one durability, beside Kafka's. Figures that were not measured are None.

    `floor` is the figure of the same broker without a commit protocol: only client, network and loop. The
    limit applies to `ratio`, which is to Kafka's figure, or to the reference in `aim`. `verdict` is met,
    missed or not measured.
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
class Aim:
    """A limit of the ratio to a reference, which is Kafka's figure if none is named."""

    limit: float
    of: str = "Kafka's"
    reference: Figure | None = None


@dataclass(frozen=True)
class Goal:
    """The aims for a figure, under fsync and under os; `os` is None for what is measured under fsync only."""

    figure: str
    unit: str
    measure: Figure
    is_at_most: bool
    fsync: Aim
    os: Aim | None
    has_floor: bool = False


def targets(results: Results) -> list[Target]:
    """All targets, each under both durabilities."""
    return [
        target(results, goal, aim, system)
        for goal in GOALS
        for aim, system in ((goal.fsync, "local-copy fsync"), (goal.os, "local-copy os"))
        if aim is not None
    ]


def target(results: Results, goal: Goal, aim: Aim, system: str) -> Target:
    """One goal under one durability."""
    ours, kafka = goal.measure(results, system), goal.measure(results, KAFKA)
    ratio = ratio_of(ours, aim.reference(results, system) if aim.reference else kafka)
    floor = floor_of(goal.measure)(results, system) if goal.has_floor else None
    wanted = f"at {'most' if goal.is_at_most else 'least'} {limit_text(aim.limit, aim.of)}"
    outcome = verdict(ratio, aim.limit, goal.is_at_most)
    return Target(goal.figure, durability_of(system), goal.unit, ours, kafka, floor, ratio, wanted, outcome)


def ratio_of(ours: float | None, reference: float | None) -> float | None:
    """Our figure over the reference; None if either was not measured, or the reference is 0."""
    if ours is None or not reference:
        return None
    return ours / reference


def verdict(ratio: float | None, limit: float, is_at_most: bool) -> str:
    """met, missed or not measured."""
    if ratio is None:
        return "not measured"
    return "met" if (ratio <= limit if is_at_most else ratio >= limit) else "missed"


def limit_text(limit: float, of: str) -> str:
    """A text such as "1/3 of Kafka's", "Kafka's", "1.5 times Kafka's"."""
    if limit == 1:
        return of
    if limit > 1:
        return f"{limit:g} times {of}"
    is_simple = math.isclose(1 / limit, round(1 / limit))
    return f"1/{1 / limit:.0f} of {of}" if is_simple else f"{limit:g} of {of}"


# -- goals -----------------------------------------------------------------------------------------


def of_kafka(fsync: float, os: float) -> tuple[Aim, Aim]:
    """Aims under fsync and under os, as multiples of Kafka's figure."""
    return Aim(fsync), Aim(os)


def near_floor(measure: Figure) -> Aim:
    """The aim for a latency that is mostly the client's own time."""
    return Aim(NEAR, "the floor", floor_of(measure))


def latency(figure: str, measure: Figure, fsync: Aim | None = None, os: Aim | None = None) -> Goal:
    """A latency of transactions; it should be near the floor if no other aim is given."""
    aims = (fsync or near_floor(measure), os or near_floor(measure))
    return Goal(figure, "ms", measure, True, *aims, has_floor=True)


def flushed(figure: str, measure: Figure) -> Goal:
    """A commit alone, for which the floor makes nothing durable."""
    limit = f"the floor and {NEAR} times a {PARALLEL_SYNC}"
    return latency(figure, measure, fsync=Aim(1, limit, floor_and_sync(measure, NEAR)))


def rate(figure: str, partitions: int, producers: int, *, has_floor: bool = False) -> Goal:
    """A rate of transactions, which should be at least Kafka's under either durability."""
    measure = transactions_per_second(partitions, producers)
    return Goal(figure, "1/s", measure, False, *of_kafka(1, 1), has_floor=has_floor)


def of_spark(figure: str, unit: str, measure: Figure, limit: float, *, is_at_most: bool = False) -> Goal:
    """A figure of Spark with faircopy, beside Spark's own source and sink with Kafka."""
    return Goal(f"Spark, {figure}", unit, measure, is_at_most, Aim(limit), None)


COMMIT = "commit call to ack, 4 partitions"
PACED = f"the same, {PACE_MS} ms after the last"
FLUSHED = "the same, flushed before the call"
SECOND = "with Kafka's own client"
BEFORE = Aim(1.05, "its own before", unstalled_p99_ms)
WRITTEN = [
    (10_000, "padded"), (100_000, "padded"), (1_000_000, "padded"), (100_000, "JSON"), (100_000, "1 KiB")
]  # fmt: skip
OVERHEAD = Aim(1 / 10, "its speed without", hundred_percent)

GOALS = [
    latency(f"{COMMIT}, p50", latency_ms("commit_to_ack", "p50_ms")),
    latency(f"{COMMIT}, p99", latency_ms("commit_to_ack", "p99_ms"), *of_kafka(1 / 2, 1 / 3)),
    latency(f"{PACED}, p50", latency_ms("commit_to_ack", "p50_ms", PACE_MS)),
    latency(f"{PACED}, p99", latency_ms("commit_to_ack", "p99_ms", PACE_MS), fsync=Aim(1 / 2)),
    flushed(f"{FLUSHED}, p50", latency_ms("flushed_commit_to_ack", "p50_ms")),
    flushed(f"{FLUSHED}, p99", latency_ms("flushed_commit_to_ack", "p99_ms")),
    latency("end to end in transactions of 4 partitions, p50", latency_ms("end_to_end", "p50_ms")),
    Goal("others' delivery while a transaction hangs, p99", "ms", stalled_p99_ms, True, BEFORE, BEFORE),
    Goal("plain produce, messages of 1 KiB", "MB/s", produced_mb_per_second, False, *of_kafka(0.7, 1.2)),
    Goal("what a commit each 100 ms costs a producer", "%", overhead_percent, True, OVERHEAD, OVERHEAD),
    rate("transactions of one message, one producer", 1, 1, has_floor=True),
    rate("transactions of 4 partitions, 8 producers", 4, 8, has_floor=True),
    rate("transactions of 64 partitions, 64 producers", 64, 64),
    Goal("committed rows read, 50 % aborted", "rows/s", rows_per_second, False, *of_kafka(1.5, 1.5)),
    Goal("memory when idle", "MiB", idle_mib, True, *of_kafka(1 / 4, 1 / 4)),
    Goal("memory under load, peak", "MiB", loaded_mib, True, *of_kafka(1 / 4, 1 / 4)),
    *(
        Goal(
            f"{SECOND}, transactions of 5 ms, send to ack, {percentile}",
            "ms",
            tool_latency_ms(5, f"{percentile}_ms"),
            True,
            *of_kafka(1, 1),
        )
        for percentile in ("p50", "p99")
    ),
    Goal(f"{SECOND}, CPU of the broker", "s", tools_cpu_seconds, True, *of_kafka(1, 1)),
    Goal(f"{SECOND}, memory of the broker, peak", "MiB", tools_mib, True, *of_kafka(1 / 4, 1 / 4)),
    *(
        of_spark(f"{rows:,} rows written, {kind}", "rows/s", written_per_second(rows, kind), 5)
        for rows, kind in WRITTEN
    ),
    Goal("Spark, what a transaction costs the sink", "%", sink_overhead_percent, True, OVERHEAD, None),
    of_spark("rows read in a batch", "rows/s", batch_rows_per_second, 3),
    of_spark("rows read in a stream", "rows/s", stream_rows_per_second, 1.5),
    of_spark("send to row in foreachBatch, p50", "ms", live_p50_ms, 1, is_at_most=True),
]
