"""What a Spark stream shows."""

from __future__ import annotations

import statistics

from bench.page.document import Cell, Section, Table, number, system
from bench.page.palette import in_order
from bench.results import Results, SparkSink, SparkSource


def spark(results: Results) -> Section:
    """A line for each system and reader."""
    rows: list[SparkSource] = results.of(SparkSource)
    order = in_order(row.system for row in rows)
    columns = [
        "System", "Reader", "Committed", "Shown", "Aborted shown", "Verdict", "Rows/s in a stream",
        "in a batch", "Latency p50, ms", "p99", "Options",
    ]  # fmt: skip
    caption = (
        "A reader should show all committed rows, and no aborted ones. Options are those that a user of the "
        "reader has to know about."
    )
    ordered = sorted(rows, key=lambda row: (row.reader, order.index(row.system)))
    return Section(
        "spark",
        "Spark",
        [
            "Spark reads the same transactions, some of which abort: from the broker, with its Kafka source "
            "or with faircopy's, or from plain Parquet files. And it writes the same rows, with its Kafka "
            "sink or with faircopy's, which writes each batch as one transaction."
        ],
        [*([Table(caption, columns, [line(row) for row in ordered])] if rows else []), *sinks(results)],
        order,
        ("Spark",),
    )


def sinks(results: Results) -> list[Table]:
    """A line for each system and sink."""
    rows: list[SparkSink] = results.of(SparkSink)
    if not rows:
        return []
    caption = (
        f"Batches of {rows[0].rows:,} rows of {rows[0].row_bytes} bytes, from memory to the broker's answer."
    )
    lines = [
        [
            system(row.system),
            Cell(row.sink),
            number(statistics.median(row.rows_per_second)),
            number(min(row.rows_per_second)),
            number(max(row.rows_per_second)),
        ]
        for row in rows
    ]
    return [Table(caption, ["System", "Sink", "Rows/s, median", "least", "most"], lines)]


def line(row: SparkSource) -> list[Cell]:
    """One reader with one system."""
    is_right = row.shown == row.committed and not row.aborted_shown
    return [
        system(row.system),
        Cell(row.reader),
        Cell(f"{row.committed:,}", "number"),
        Cell(f"{row.shown:,}", "number"),
        Cell(f"{row.aborted_shown:,}", "number"),
        Cell("right", "good") if is_right else Cell("wrong", "bad"),
        number(statistics.median(row.rows_per_second)),
        number(statistics.median(row.batch_rows_per_second)) if row.batch_rows_per_second else Cell("-"),
        number(row.latency.p50_ms),
        number(row.latency.p99_ms),
        Cell(", ".join(f"{key}={value}" for key, value in row.options.items()), "code"),
    ]
