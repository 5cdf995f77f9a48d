"""What a page is made of: sections with plots, tables and notes. The template knows how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from bench.page.numerals import significant


@dataclass(frozen=True)
class Cell:
    """A cell of a table; `system` puts its colour in front.

    `kind` is number, good, bad, quiet, heading, code, formula, or nothing.
    """

    text: str
    kind: str = ""
    system: str = ""


@dataclass(frozen=True)
class Stack:
    """A cell of several lines, the first the most important. `tint` is a class of the style sheet."""

    lines: Sequence[Cell]
    tint: str = ""


@dataclass(frozen=True)
class Table:
    """`caption` says what to see in it. On a narrow screen each row of `is_cards` becomes a card."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | Stack]]
    is_cards: bool = False
    kind: ClassVar[str] = "table"

    @property
    def kinds(self) -> list[str]:
        """Of each column: that of its cells, as far as its head should stand like them."""
        cells: Sequence[Cell | Stack] = self.rows[0] if self.rows else [Cell("")] * len(self.columns)
        return ["number" if isinstance(cell, Cell) and cell.kind == "number" else "" for cell in cells]


@dataclass(frozen=True)
class Plot:
    """A picture; `caption` says what to see in it, `alternative` what it shows, for those who can't."""

    title: str
    svg: Markup
    caption: str
    alternative: str


@dataclass(frozen=True)
class Plots:
    """Pictures side by side, as many as there is room for. `caption` speaks of all."""

    plots: Sequence[Plot]
    caption: str = ""
    kind: ClassVar[str] = "plots"


@dataclass(frozen=True)
class Folded:
    """What only some readers want to open."""

    title: str
    blocks: Sequence[Table | Plots]
    kind: ClassVar[str] = "folded"


@dataclass(frozen=True)
class Section:
    """Without blocks it was not measured. `steps` are those parts of a run, by the names that the run gives them,
    without which something is missing here: they find the reasons in the list of what was skipped.
    """

    anchor: str
    title: str
    text: Sequence[str]
    blocks: Sequence[Table | Plots | Folded]
    systems: Sequence[str] = ()
    steps: tuple[str, ...] = ()


def number(value: float | None) -> Cell:
    """A figure."""
    return Cell(significant(value), "number")


def system(name: str) -> Cell:
    """A system's name, with its colour."""
    return Cell(name, "heading", name)
