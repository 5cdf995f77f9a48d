"""Charts of one figure for each system, as bars."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from matplotlib.axes import Axes

from bench.page.chart import INK, chart
from bench.page.document import Plot
from bench.page.numerals import significant
from bench.page.palette import SOLID, look_of

INCHES_A_BAR = 0.27
INCHES_AROUND = 0.85


def bar_plot(name: str, title: str, rounds: Mapping[str, list[float]], label: str, caption: str = "") -> Plot:
    """The median of each system's rounds, with a thin line from the least to the greatest."""
    medians = {system: statistics.median(values) for system, values in rounds.items()}

    def draw(axes: Axes) -> None:
        for place, (system, values) in enumerate(rounds.items()):
            draw_bar(axes, place, system, values)
        greatest = max(max(values) for values in rounds.values())
        axes.set_yticks(range(len(rounds)), list(rounds))
        axes.set(xlabel=label, xlim=(0, greatest * 1.18 or 1), ylim=(len(rounds) - 0.4, -0.6))
        axes.grid(visible=False, axis="y")

    height_inches = INCHES_AROUND + INCHES_A_BAR * len(rounds)
    return Plot(title, chart(name, title, draw, height_inches), caption, alternative(title, medians, label))


def draw_bar(axes: Axes, place: int, system: str, values: list[float]) -> None:
    """One bar; hollow where nothing is fsynced."""
    look, median = look_of(system), statistics.median(values)
    face = look.light if look.dash == SOLID else "none"
    hatch = "" if look.dash == SOLID else "/////"
    axes.barh(place, median, height=0.62, facecolor=face, edgecolor=look.light, hatch=hatch)
    if len(values) > 1:
        axes.plot((min(values), max(values)), (place, place), color=INK, linewidth=1)
    axes.annotate(
        significant(median),
        (max(values), place),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )


def alternative(title: str, medians: Mapping[str, float], label: str) -> str:
    """All medians in words."""
    parts = (f"{system} {significant(median)}" for system, median in medians.items())
    return f"{title}, {label}, median: {'; '.join(parts)}."
