"""Spark's figures that are shown side by side: each takes the results and a system; None if not measured."""

from __future__ import annotations

import statistics

from bench.page.figures import Figure, of_some, row_of
from bench.results import Results, SparkSink, SparkSource

KAFKA = "kafka"


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
