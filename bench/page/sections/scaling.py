"""How latency and rate of transactions change with their partitions and producers."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.page.document import Plot, Plots, Section
from bench.page.lines import Points, line_plot
from bench.page.numerals import counted, quantity
from bench.page.palette import in_order
from bench.results import Latency, Results

CAPTION = (
    "The commit call to ack, median, should stay nearly flat as partitions are added where they are prepared "
    "at the same time; the rate of transactions should grow with the producers until a core or the disk is "
    "full."
)


def scaling(results: Results) -> Section:
    """Over partitions with one producer, and over producers with a few partitions."""
    rows: list[Latency] = results.of(Latency)
    return Section(
        "scaling",
        "Scaling of transactions",
        [],
        [Plots(plots(rows), CAPTION)] if any(not row.pause_ms for row in rows) else [],
        in_order(row.system for row in rows),
        ("latency", "systems", "system"),
    )


def plots(rows: list[Latency]) -> list[Plot]:
    """The plots with more than one measured point."""
    rows = [row for row in rows if not row.pause_ms]
    producers = min(row.producers for row in rows)
    partitions = 4 if any(row.partitions == 4 for row in rows) else min(row.partitions for row in rows)
    over_partitions = [row for row in rows if row.producers == producers]
    over_producers = [row for row in rows if row.partitions == partitions]
    title = f"Commit over partitions, {counted(producers, 'producer')}"
    found = [
        plot("scaling-partitions", title, over_partitions, "partitions", commit_p50_ms, "commit p50, ms"),
        plot(
            "scaling-producers",
            f"Commit over producers, {counted(partitions, 'partition')}",
            over_producers,
            "producers",
            commit_p50_ms,
            "commit p50, ms",
        ),
        plot(
            "scaling-rate",
            f"Rate over producers, {counted(partitions, 'partition')}",
            over_producers,
            "producers",
            lambda row: statistics.median(row.per_second),
            "transactions a second",
        ),
    ]
    return [each for each in found if each is not None]


def commit_p50_ms(row: Latency) -> float:
    """The median from the call of commit to its ack, in ms."""
    return row.commit_to_ack.p50_ms


def plot(
    name: str, title: str, rows: list[Latency], over: str, measure: Callable[[Latency], float], label: str
) -> Plot | None:
    """One measure over `over`, a field of the rows; None unless there are two values of it."""
    lines: dict[str, Points] = {}
    for system in in_order(row.system for row in rows):
        lines[system] = sorted((getattr(row, over), measure(row)) for row in rows if row.system == system)
    if len({x for points in lines.values() for x, _ in points}) < 2:
        return None
    return line_plot(name, title, lines, (over, label), logarithmic_axes="xy", show_x=quantity)
