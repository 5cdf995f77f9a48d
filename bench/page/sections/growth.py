"""The same figures while partitions, open transactions or the log grow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bench.page.document import Cell, Plot, Plots, Section, Table, number, system
from bench.page.lines import Points, line_plot
from bench.page.numerals import MIB, quantity, size
from bench.page.palette import in_order
from bench.results import Growth, Results

LOG_BYTES = "log bytes"
CAPTION = (
    "Both axes are logarithmic, so a power of the size is a straight line: power 0 is flat, power 1 grows as "
    "fast as the size itself. The powers are fitted by least squares over all measured sizes."
)


@dataclass(frozen=True)
class Measure:
    """One figure of a row of growth."""

    name: str
    label: str
    of: Callable[[Growth], float]


MEASURES = (
    Measure("Commit", "commit p50, ms", lambda row: row.commit_to_ack.p50_ms),
    Measure("Produced", "MB/s", lambda row: row.produced_bytes_per_second / 1e6),
    Measure("Memory", "MiB", lambda row: row.memory_bytes / MIB),
    Measure("Restart", "seconds", lambda row: row.restart_seconds),
)


def growth(results: Results) -> Section:
    """A plot for each figure and what grows, and the fitted powers."""
    rows: list[Growth] = results.of(Growth)
    kinds = sorted({row.of for row in rows}, key=lambda of: (of != "partitions", of))
    plots = [plot for of in kinds for measure in MEASURES if (plot := plot_of(rows, of, measure)) is not None]
    return Section(
        "growth",
        "Growth",
        [
            "What happens to a commit, to the speed, to memory and to a restart when there is more of "
            "everything."
        ],
        [Plots(plots, CAPTION), table(rows, kinds)] if rows else [],
        in_order(row.system for row in rows),
        ("growth", "starts of system"),
    )


def lines_of(rows: list[Growth], of: str, measure: Measure) -> dict[str, Points]:
    """Each system's points, where there is something to show on a logarithmic axis."""
    lines = {
        name: sorted(
            (row.size, measure.of(row))
            for row in rows
            if (row.system, row.of) == (name, of) and measure.of(row) > 0
        )
        for name in in_order(row.system for row in rows)
    }
    return {name: points for name, points in lines.items() if points}


def plot_of(rows: list[Growth], of: str, measure: Measure) -> Plot | None:
    """One measure over the size of what grows; None if it was not measured."""
    lines = lines_of(rows, of, measure)
    if not lines:
        return None
    name = f"growth-{of.replace(' ', '-')}-{measure.name.lower()}"
    show_x = size if of == LOG_BYTES else quantity
    title = f"{measure.name} over {of}"
    return line_plot(name, title, lines, (of, measure.label), logarithmic_axes="xy", show_x=show_x)


def power(points: Points) -> float | None:
    """The power b of the fitted curve a·size^b; None with fewer than two sizes."""
    logs = [(math.log(size), math.log(value)) for size, value in points if size > 0 and value > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def table(rows: list[Growth], kinds: list[str]) -> Table:
    """How steeply each measure grows: the fitted powers."""
    columns = ["System", "What grows", "From", "To", *(f"{measure.name}, power" for measure in MEASURES)]
    lines = [
        line(rows, name, of)
        for of in kinds
        for name in in_order(row.system for row in rows)
        if any((row.system, row.of) == (name, of) for row in rows)
    ]
    caption = "Fitted powers. For commit, memory and restart the best is 0 or less; for speed, 0 or more."
    return Table(caption, columns, lines)


def line(rows: list[Growth], name: str, of: str) -> list[Cell]:
    """One system, and one thing that grows."""
    sizes = [row.size for row in rows if (row.system, row.of) == (name, of)]
    show = size if of == LOG_BYTES else quantity
    powers = (power(lines_of(rows, of, measure).get(name, [])) for measure in MEASURES)
    ends = [Cell(show(min(sizes)), "number"), Cell(show(max(sizes)), "number")]
    return [system(name), Cell(of), *ends, *(rounded(each) for each in powers)]


def rounded(value: float | None) -> Cell:
    """A power to two places: a third would be noise."""
    return number(None) if value is None else Cell(f"{value:.2f}".replace("-0.00", "0.00"), "number")
