"""The floors of the machine."""

from __future__ import annotations

from bench.page.document import Cell, Section, Table, number
from bench.results import Floor, Results


def floors(results: Results) -> Section:
    """One line for each floor."""
    rows = [
        [Cell(floor.name, "heading"), *value_of(floor), Cell(floor.about, "quiet")]
        for floor in results.floors
    ]
    caption = (
        "No system here is faster than these; a figure far from them has other reasons than the hardware."
    )
    return Section(
        "floors",
        "Floors of this machine",
        [
            "Measured in the same run, so that figures of different machines can be compared as multiples of "
            "them."
        ],
        [Table(caption, ["Floor", "Value", "Unit", "What was done"], rows)] if rows else [],
        steps=("floors",),
    )


def value_of(floor: Floor) -> list[Cell]:
    """The figure and its unit; rates of bytes in MB/s, as everywhere on the page."""
    if floor.unit == "bytes/s":
        return [number(floor.value / 1e6), Cell("MB/s")]
    return [number(floor.value), Cell(floor.unit)]
