"""The figures of Spark that have targets: each takes the results and a system; None if not measured."""

from __future__ import annotations

import statistics

from bench.page.figures import Figure, of_some, row_of
from bench.results import Results, SparkSink, SparkSource

KAFKA = "kafka"
WITHOUT_TRANSACTIONS = "faircopy without transactions"
OVERHEAD_ROWS = 100_000


def own(system: str) -> str:
    """The source or sink that is measured with a system: Spark's own with Kafka, and ours with faircopy."""
    return "kafka" if system == KAFKA else "faircopy"


def sink_rate(results: Results, system: str, sink: str, rows: int, kind: str) -> float | None:
    """Rows a second of a sink in batches of so many rows."""
    rows_of_sinks: list[SparkSink] = results.of(SparkSink)
    for row in rows_of_sinks:
        if (row.system, row.sink, row.rows, row.kind) == (system, sink, rows, kind):
            return statistics.median(row.rows_per_second)
    return None


def written_per_second(rows: int, kind: str) -> Figure:
    """Rows a second that Spark writes in batches of so many rows of a kind."""
    return lambda results, system: sink_rate(results, system, own(system), rows, kind)


def sink_overhead_percent(results: Results, system: str) -> float | None:
    """By how much the transaction of a batch slows faircopy's sink down."""
    transactional = sink_rate(results, system, "faircopy", OVERHEAD_ROWS, "padded")
    plain = sink_rate(results, system, WITHOUT_TRANSACTIONS, OVERHEAD_ROWS, "padded")
    return 100 * (1 - transactional / plain) if transactional and plain else None


def source_row(results: Results, system: str) -> SparkSource | None:
    """What was measured of a source, with its default options."""
    row: SparkSource | None = row_of(results, SparkSource, system, reader=own(system), options={})
    return row


def batch_rows_per_second(results: Results, system: str) -> float | None:
    """Rows a second that Spark reads in a batch."""
    row = source_row(results, system)
    return statistics.median(row.batch_rows_per_second) if row and row.batch_rows_per_second else None


def stream_rows_per_second(results: Results, system: str) -> float | None:
    """Rows a second that Spark reads in a stream."""
    row = source_row(results, system)
    return statistics.median(row.rows_per_second) if row else None


def live_p50_ms(results: Results, system: str) -> float | None:
    """From the send of a message to its row in foreachBatch, in a stream that is warm."""
    row = source_row(results, system)
    return of_some(row.latency, "p50_ms") if row else None
