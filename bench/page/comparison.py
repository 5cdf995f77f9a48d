"""faircopy beside Apache Kafka: the figures of a run that say most, and who is ahead.

Systems that promise the same are compared. Where Kafka was not measured with fsync, faircopy under fsync is
compared with Kafka as it comes, which promises less.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.page.figures import (
    Figure,
    committed_mb_per_second,
    idle_mib,
    latency_ms,
    loaded_mib,
    produced_mb_per_second,
    rows_per_second,
    stalled_p99_ms,
    tool_latency_ms,
    tools_cpu_seconds,
    tools_mib,
    transactions_per_second,
)
from bench.page.numerals import significant
from bench.page.spark_figures import (
    KAFKA,
    batch_rows_per_second,
    live_p50_ms,
    stream_rows_per_second,
    written_per_second,
)
from bench.results import Results

PAIRS = (("local-copy fsync", "kafka fsync"), ("local-copy os", KAFKA))
COLUMNS = [
    "Figure", "Unit", "faircopy, fsync", "Kafka, fsync", "Ahead", "faircopy, os", "Kafka", "Ahead",
]  # fmt: skip
LEVEL = 1.15
"""Closer figures are level: rounds of one cell differ by more."""


@dataclass(frozen=True)
class Ahead:
    """Who of two is ahead, how many times: "faircopy", "Kafka", or "level"."""

    who: str
    times: float


@dataclass(frozen=True)
class Compared:
    """One figure of each pair, ours and then Kafka's, and who is ahead; None if it was not measured."""

    figure: str
    unit: str
    pairs: list[tuple[float | None, float | None]]
    ahead: list[Ahead | None]


@dataclass(frozen=True)
class Row:
    """A figure to compare."""

    figure: str
    unit: str
    measure: Figure
    is_less_better: bool = True


def comparison(results: Results) -> list[Compared]:
    """All figures, each under fsync and under os."""
    return [compared(results, row) for row in ROWS]


def compared(results: Results, row: Row) -> Compared:
    """One figure."""
    pairs = [(row.measure(results, ours), row.measure(results, kafka)) for ours, kafka in PAIRS]
    plain_kafka = pairs[-1][1]
    ahead = [
        who_is_ahead(ours, kafka if kafka is not None else plain_kafka, row.is_less_better)
        for ours, kafka in pairs
    ]
    return Compared(row.figure, row.unit, pairs, ahead)


def who_is_ahead(ours: float | None, kafka: float | None, is_less_better: bool) -> Ahead | None:
    """Who of two is ahead; None if one of them was not measured."""
    if not ours or not kafka:
        return None
    times = kafka / ours if is_less_better else ours / kafka
    if max(times, 1 / times) < LEVEL:
        return Ahead("level", max(times, 1 / times))
    return Ahead("faircopy", times) if times > 1 else Ahead("Kafka", 1 / times)


def ahead_text(ahead: Ahead | None) -> str:
    """In words: faircopy, 3.2 times."""
    if ahead is None:
        return "–"
    return ahead.who if ahead.who == "level" else f"{ahead.who}, {significant(ahead.times, 2)} times"


def latencies(figure: str, which: str, pause_ms: int = 0) -> list[Row]:
    """The median and the 99th percentile of transactions over four partitions."""
    return [
        Row(f"{figure}, {name}", "ms", latency_ms(which, f"{name}_ms", pause_ms)) for name in ("p50", "p99")
    ]


def rate(figure: str, measure: Figure, unit: str = "1/s") -> Row:
    """A figure of which more is better."""
    return Row(figure, unit, measure, is_less_better=False)


SECOND = "with Kafka's own client"
ROWS = [
    *latencies("commit call to ack, 4 partitions", "commit_to_ack"),
    *latencies("the same, 50 ms after the last", "commit_to_ack", 50),
    *latencies("the same, flushed before the call", "flushed_commit_to_ack"),
    *latencies("end to end in transactions of 4 partitions", "end_to_end"),
    Row("others' delivery while a transaction hangs, p99", "ms", stalled_p99_ms),
    rate("plain produce, messages of 1 KiB", produced_mb_per_second, "MB/s"),
    rate("the same with a commit each 100 ms", committed_mb_per_second, "MB/s"),
    rate("transactions of one message, one producer", transactions_per_second(1, 1)),
    rate("transactions of 4 partitions, 8 producers", transactions_per_second(4, 8)),
    rate("transactions of 64 partitions, 64 producers", transactions_per_second(64, 64)),
    rate("committed rows read, 50 % aborted", rows_per_second),
    Row("memory when idle", "MiB", idle_mib),
    Row("memory under load, peak", "MiB", loaded_mib),
    Row(f"{SECOND}, transactions of 5 ms, send to ack, p50", "ms", tool_latency_ms(5, "p50_ms")),
    Row(f"{SECOND}, transactions of 5 ms, send to ack, p99", "ms", tool_latency_ms(5, "p99_ms")),
    Row(f"{SECOND}, CPU of the broker", "s", tools_cpu_seconds),
    Row(f"{SECOND}, memory of the broker, peak", "MiB", tools_mib),
    *(
        rate(f"Spark, {rows:,} rows written, {kind}", written_per_second(rows, kind))
        for rows, kind in ((10_000, "padded"), (1_000_000, "padded"), (100_000, "JSON"), (100_000, "1 KiB"))
    ),
    rate("Spark, rows read in a batch", batch_rows_per_second),
    rate("Spark, rows read in a stream", stream_rows_per_second),
    Row("Spark, send to row in foreachBatch, p50", "ms", live_p50_ms),
]
