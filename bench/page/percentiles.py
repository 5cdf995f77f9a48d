"""Distributions as percentile curves: each nine of the percentage takes the same width."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from bench.page.chart import chart, logarithmic
from bench.page.document import Plot
from bench.page.numerals import significant
from bench.page.palette import look_of
from bench.results import Histogram

TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)


def nines(percent: float) -> float:
    """0 for 0 %, 1 for 90 %, 2 for 99 %, and so on."""
    return -math.log10(1 - percent / 100)


def known_percent(histogram: Histogram) -> float:
    """The highest percentage to show: n measurements say nothing about less than 1/n of them."""
    return 100 * (1 - 1 / max(histogram.count, 1))


def percentile_plot(name: str, title: str, histograms: Mapping[str, Histogram], caption: str) -> Plot:
    """A curve for each system."""

    def draw(axes: Axes) -> None:
        for system, histogram in histograms.items():
            draw_curve(axes, system, histogram)
        logarithmic(axes, "y")
        axes.set_xticks([nines(percent) for percent in TICKS], [f"{percent:g}" for percent in TICKS])
        axes.xaxis.set_minor_locator(NullLocator())
        most = max(known_percent(histogram) for histogram in histograms.values())
        axes.set(xlabel="percentile, %", ylabel="ms", xlim=(0, nines(max(most, 99.0))))

    return Plot(title, chart(name, title, draw), caption, alternative(title, histograms))


def draw_curve(axes: Axes, system: str, histogram: Histogram) -> None:
    """One curve, with marks at its median and 99th percentile. The axis has no place for the maximum."""
    known = known_percent(histogram)
    points = [(nines(percent), ms) for percent, ms in histogram.curve if percent <= known and ms > 0]
    if points:
        look = look_of(system)
        axes.plot(*zip(*points, strict=True), color=look.light, linestyle=look.dash)
    marked = [(nines(50), histogram.p50_ms), (nines(99), histogram.p99_ms)]
    axes.plot(
        *zip(*marked, strict=True), linestyle="", color=look_of(system).light, marker=look_of(system).marker
    )


def alternative(title: str, histograms: Mapping[str, Histogram]) -> str:
    """The medians and 99th percentiles in words."""
    parts = (
        f"{system} {significant(histogram.p50_ms)} and {significant(histogram.p99_ms)} ms"
        for system, histogram in histograms.items()
    )
    return f"{title}, percentile curves. 50th and 99th percentile: {'; '.join(parts)}."
