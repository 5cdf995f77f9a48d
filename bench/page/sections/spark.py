"""What a Spark stream shows."""

from __future__ import annotations

import statistics

from bench.page.document import Cell, Section, Table, number, system
from bench.page.palette import in_order
from bench.results import Results, SparkSource


def spark(results: Results) -> Section:
    """A line for each system and reader."""
    rows: list[SparkSource] = results.of(SparkSource)
    order = in_order(row.system for row in rows)
    columns = [
        "System", "Reader", "Committed", "Shown", "Aborted shown", "Verdict", "Rows/s", "Latency p50, ms",
        "p99",
        "Options",
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
            "A Spark stream reads the same transactions, some of which abort: from the broker, or from plain "
            "Parquet files."
        ],
        [Table(caption, columns, [line(row) for row in ordered])] if rows else [],
        order,
        ("Spark",),
    )


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
        number(row.latency.p50_ms),
        number(row.latency.p99_ms),
        Cell(", ".join(f"{key}={value}" for key, value in row.options.items()), "code"),
    ]
