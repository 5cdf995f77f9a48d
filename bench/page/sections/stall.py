"""How one hanging transaction affects the others."""

from __future__ import annotations

import statistics

from matplotlib.axes import Axes

from bench.page.chart import SHADE, chart, logarithmic
from bench.page.document import Cell, Plot, Plots, Section, Table, number, system
from bench.page.numerals import significant
from bench.page.palette import in_order, look_of
from bench.results import Results, Stall

STEP_SECONDS = 0.25


def stall(results: Results) -> Section:
    """A time line of all systems, and their distributions before, while and after."""
    by_system = {row.system: row for row in results.of(Stall)}
    rows = [by_system[name] for name in in_order(by_system)]
    return Section(
        "stall",
        "While a transaction hangs",
        [
            "One transaction writes a message and then hangs. Others keep writing to the same partition, and "
            "a consumer that sees only committed data reads it. If a consumer has to wait for the oldest "
            "open transaction, it waits for everything after that, too.",
            single_run(rows),
        ],
        [Plots([plot(rows)]), table(rows)] if rows else [],
        [row.system for row in rows],
        ("stall", "systems", "system"),
    )


def single_run(rows: list[Stall]) -> str:
    """A sentence on the length of the runs; empty without rows."""
    if not rows:
        return ""
    before, during, after = (
        statistics.median(spans) for spans in zip(*map(spans_seconds, rows), strict=True)
    )
    return (
        f"Each system was run once, for about {before + during + after:.0f} seconds: {before:.0f} before the "
        f"transaction, {during:.0f} while it hangs and {after:.0f} after it. So each figure below is from "
        "one stretch of one run, not from several rounds, and includes the machine's noise in that stretch. "
        "The fewer messages, the less a 99th percentile says."
    )


def spans_seconds(row: Stall) -> tuple[float, float, float]:
    """Before, while and after."""
    end = max((second for second, _ in row.timeline), default=row.closed_seconds)
    return row.opened_seconds, row.closed_seconds - row.opened_seconds, max(end - row.closed_seconds, 0.0)


def plot(rows: list[Stall]) -> Plot:
    """Delivery over the time of the send, with the transaction's life shaded."""
    title = "Others' delivery while a transaction hangs"

    def draw(axes: Axes) -> None:
        axes.axvspan(
            0, max(row.closed_seconds - row.opened_seconds for row in rows), facecolor=SHADE, linewidth=0
        )
        for row in rows:
            look = look_of(row.system)
            axes.plot(*zip(*slowest(row), strict=True), color=look.light, linestyle=look.dash, linewidth=1.2)
        logarithmic(axes, "y")
        axes.set(xlabel="send, seconds after the transaction began to hang", ylabel="ms until delivery")

    worst = "; ".join(f"{row.system} {significant(row.during.max_ms)} ms" for row in rows)
    return Plot(
        title,
        chart("stall", title, draw),
        "The transaction hangs in the shaded time. Each point is the slowest message sent in a quarter of a "
        f"second. The slowest of all while it hung: {worst}.",
        f"{title}: milliseconds until delivery over the time of the send. Slowest while it hung: {worst}.",
    )


def slowest(row: Stall) -> list[tuple[float, float]]:
    """The slowest delivery of each step, by time since the transaction began to hang."""
    steps: dict[int, float] = {}
    for second, milliseconds in row.timeline:
        step = int((second - row.opened_seconds) // STEP_SECONDS)
        steps[step] = max(steps.get(step, 0.0), milliseconds)
    return [((step + 0.5) * STEP_SECONDS, milliseconds) for step, milliseconds in sorted(steps.items())] or [
        (0, 1)
    ]


def table(rows: list[Stall]) -> Table:
    """Others' delivery before, while and after the transaction hangs."""
    columns = [
        "System", "Before p50, ms", "p99", "While it hangs p50, ms", "p99", "max", "After p50, ms", "p99",
        "p99 while it hangs / before", "Messages before", "while it hangs", "after", "Hung, s",
    ]  # fmt: skip
    caption = "A ratio of 1 means that the others noticed nothing. All figures of a row are of a single run."
    return Table(caption, columns, [line(row) for row in rows])


def line(row: Stall) -> list[Cell]:
    """One system."""
    before, during, after = row.before, row.during, row.after
    ratio = during.p99_ms / before.p99_ms if before.p99_ms else None
    figures = (
        before.p50_ms, before.p99_ms, during.p50_ms, during.p99_ms, during.max_ms, after.p50_ms,
        after.p99_ms, ratio,
    )  # fmt: skip
    counts = (Cell(f"{histogram.count:,}", "number") for histogram in (before, during, after))
    return [
        system(row.system),
        *map(number, figures),
        *counts,
        number(row.closed_seconds - row.opened_seconds),
    ]
