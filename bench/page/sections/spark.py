"""What a Spark stream shows."""

from __future__ import annotations

import statistics

from bench.page.document import Cell, Section, Table, number, system
from bench.page.palette import in_order
from bench.page.spark_figures import KAFKA
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
        "Batches of rows, from memory to the broker's answer. The ratio is to Spark's Kafka sink with Kafka, "
        "for the same rows. The last sink counts the rows and drops them: no sink in Python can be faster."
    )
    lines = [
        [
            system(row.system),
            Cell(row.sink),
            Cell(f"{row.rows:,}", "number"),
            Cell(f"{row.kind}, {row.row_bytes:,} bytes"),
            number(statistics.median(row.rows_per_second)),
            number(min(row.rows_per_second)),
            number(max(row.rows_per_second)),
            number(ratio_to_kafka(rows, row)),
        ]
        for row in rows
    ]
    return [
        Table(caption, ["System", "Sink", "Rows", "Kind", "Rows/s, median", "least", "most", "Ratio"], lines)
    ]


def ratio_to_kafka(rows: list[SparkSink], row: SparkSink) -> float | None:
    """How many times as fast as Spark's Kafka sink with Kafka; None if that was not measured."""
    kafka = [
        statistics.median(each.rows_per_second)
        for each in rows
        if (each.system, each.sink, each.rows, each.kind) == (KAFKA, "kafka", row.rows, row.kind)
    ]
    return statistics.median(row.rows_per_second) / kafka[0] if kafka else None


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
