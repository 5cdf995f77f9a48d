"""Charts of one figure over another, a line for each system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.page.chart import chart, logarithmic
from bench.page.document import Plot
from bench.page.numerals import quantity, significant
from bench.page.palette import look_of

Points = Sequence[tuple[float, float]]


def line_plot(
    name: str,
    title: str,
    lines: Mapping[str, Points],
    labels: tuple[str, str],
    caption: str = "",
    *,
    logarithmic_axes: str = "",
    show_x: Callable[[float], str] | None = None,
) -> Plot:
    """A line for each system; `labels` name the axes, with units. The x axis has ticks at the points."""

    def draw(axes: Axes) -> None:
        # The first lies on top.
        for system, points in reversed(list(lines.items())):
            look = look_of(system)
            axes.plot(*zip(*points, strict=True), color=look.light, linestyle=look.dash, marker=look.marker)
        logarithmic(axes, *logarithmic_axes)
        if show_x is not None:
            show_ticks(axes, sorted({x for points in lines.values() for x, _ in points}), show_x)
        if "y" not in logarithmic_axes:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value)))
        axes.set(xlabel=labels[0], ylabel=labels[1])

    return Plot(title, chart(name, title, draw), caption, alternative(title, lines, labels))


def show_ticks(axes: Axes, values: list[float], show_x: Callable[[float], str]) -> None:
    """Tick the x axis at these values, and nowhere else."""
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: show_x(value)))


def alternative(title: str, lines: Mapping[str, Points], labels: tuple[str, str]) -> str:
    """The first and last point of each line in words."""
    parts = (
        f"{system} from {significant(points[0][1])} at {significant(points[0][0])} "
        f"to {significant(points[-1][1])} at {significant(points[-1][0])}"
        for system, points in lines.items()
    )
    return f"{title}, {labels[1]} over {labels[0]}: {'; '.join(parts)}."
