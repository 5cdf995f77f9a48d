"""Charts: matplotlib draws them, and the page's style sheet colours them.

Text in the SVG stays text. Ink, lines and each system's colour are CSS variables, so one chart serves light
and dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.page.numerals import quantity
from bench.page.palette import LOOKS, OTHER

INK = "#101112"
LINE = "#d0d1d2"
SHADE = "#e0e1e2"
# A logarithmic axis that spans less than this has ticks between its decades.
SHORT = 300
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.5,
}
VARIABLES = {
    INK: "currentColor",
    LINE: "var(--line)",
    SHADE: "var(--shade)",
    **{look.light: f"var({look.variable})" for look in [*LOOKS, OTHER]},
}
WITHOUT_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def chart(name: str, title: str, draw: Callable[[Axes], None], height_inches: float = 3.2) -> Markup:
    """An SVG element. `name` is unique on the page: the identifiers in the SVG begin with it."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(5.0, height_inches), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(title)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=WITHOUT_METADATA)
    return Markup(for_page(file.getvalue(), name))


def for_page(svg: str, name: str) -> str:
    """The SVG without the parts that only a separate file needs, with unique identifiers and the page's
    colours and font."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true" focusable="false"', svg, count=1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\1{name}-", svg)
    svg = re.sub(r"(font: [^;\"]*?px )[^;\"]*", r"\1system-ui, sans-serif", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r"#[0-9a-f]{6}", lambda match: VARIABLES.get(match[0], match[0]), svg)


def logarithmic(axes: Axes, *which: str) -> None:
    """Make axes logarithmic, with plain numbers, after everything is drawn.

    An axis spans at least a decade: a value that hardly changes should look like that.
    """
    for each in which:
        axes.set(**{f"{each}scale": "log"})
        low, high = widened(*getattr(axes, f"get_{each}lim")())
        axes.set(**{f"{each}lim": (low, high)})
        axis = getattr(axes, f"{each}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < SHORT else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value)))
        axis.set_minor_formatter(NullFormatter())


def widened(low: float, high: float) -> tuple[float, float]:
    """The range, widened around its middle to at least a decade."""
    factor = math.sqrt(max(10 * low / high, 1.0))
    return low / factor, high * factor
