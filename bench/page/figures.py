"""The figures that are shown side by side: each takes the results and a system; None if not measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from bench.results import (
    AbortCost,
    Histogram,
    Latency,
    Results,
    Stall,
    Start,
    Throughput,
    ToolProduce,
    ToolTotals,
)

KIB = 1024

Figure = Callable[[Results, str], float | None]


def row_of(results: Results, kind: type[Any], system: str, **where: object) -> Any | None:
    """The first row of a system with these values."""
    for row in results.of(kind):
        if row.system == system and all(getattr(row, name) == value for name, value in where.items()):
            return row
    return None


def of_some(histogram: Histogram, percentile: str) -> float | None:
    """A percentile; None for an empty histogram, whose percentiles are zero and would win."""
    return float(getattr(histogram, percentile)) if histogram.count else None


def latency_ms(which: str, percentile: str, pause_ms: int = 0) -> Figure:
    """A figure of transactions over four partitions by one producer, with pauses of `pause_ms`."""

    def measure(results: Results, system: str) -> float | None:
        row = row_of(results, Latency, system, partitions=4, producers=1, pause_ms=pause_ms)
        return row and of_some(getattr(row, which), percentile)

    return measure


def stalled_p99_ms(results: Results, system: str) -> float | None:
    """Others' delivery while a transaction hangs open in their partition."""
    row = row_of(results, Stall, system)
    return row and of_some(row.during, "p99_ms")


def produced_mb_per_second(results: Results, system: str, commit_every_ms: int = 0) -> float | None:
    """MB/s of one producer with messages of 1 KiB and a commit each `commit_every_ms`; 0 for none."""
    row = row_of(results, Throughput, system, commit_every_ms=commit_every_ms, message_bytes=KIB)
    return row and statistics.median(row.produced_bytes_per_second) / 1e6


def committed_mb_per_second(results: Results, system: str) -> float | None:
    """The same with a commit each 100 ms."""
    return produced_mb_per_second(results, system, 100)


def transactions_per_second(partitions: int, producers: int) -> Figure:
    """The rate of transactions with one message in each of `partitions` partitions, by `producers` producers
    at once.
    """

    def measure(results: Results, system: str) -> float | None:
        row = row_of(results, Latency, system, partitions=partitions, producers=producers, pause_ms=0)
        return row and statistics.median(row.per_second)

    return measure


def rows_per_second(results: Results, system: str) -> float | None:
    """Committed messages that a reader gets in a second if half of all messages are aborted."""
    row = row_of(results, AbortCost, system, aborted_percent=50)
    return row and row.delivered / statistics.median(row.seconds)


def idle_mib(results: Results, system: str) -> float | None:
    """Memory of the broker when it has just started, in MiB."""
    row = row_of(results, Start, system)
    return row and row.idle_memory_bytes / 2**20


def loaded_mib(results: Results, system: str) -> float | None:
    """Peak memory of the broker over all cases of throughput, in MiB."""
    peaks = [row.peak_memory_bytes for row in results.of(Throughput) if row.system == system]
    return max(peaks) / 2**20 if peaks else None


def tool_latency_ms(transaction_ms: int, percentile: str) -> Figure:
    """Send to ack with Kafka's own client, at a pace that leaves its queue empty."""

    def measure(results: Results, system: str) -> float | None:
        paced = [row for row in results.of(ToolProduce) if row.offered_per_second]
        found = [row for row in paced if (row.system, row.transaction_ms) == (system, transaction_ms)]
        return float(getattr(found[0], percentile)) if found else None

    return measure


def tools_cpu_seconds(results: Results, system: str) -> float | None:
    """CPU of the broker under Kafka's own tools, in seconds."""
    row = row_of(results, ToolTotals, system)
    return row and row.cpu_seconds


def tools_mib(results: Results, system: str) -> float | None:
    """Peak memory of the broker under Kafka's own tools, in MiB."""
    row = row_of(results, ToolTotals, system)
    return row and row.peak_memory_bytes / 2**20
