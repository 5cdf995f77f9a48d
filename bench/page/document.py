"""The parts of a page: sections with plots, tables and notes. The template defines how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from bench.page.numerals import significant


@dataclass(frozen=True)
class Cell:
    """A cell of a table; `system` puts its colour in front.

    `kind` is number, good, bad, quiet, heading, code, or nothing.
    """

    text: str
    kind: str = ""
    system: str = ""


@dataclass(frozen=True)
class Table:
    """`caption` says what the table shows. With `is_cards`, each row becomes a card on a narrow screen."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_cards: bool = False
    kind: ClassVar[str] = "table"

    @property
    def kinds(self) -> list[str]:
        """The kind of each column's cells, if its head should be aligned like them."""
        cells: Sequence[Cell] = self.rows[0] if self.rows else [Cell("")] * len(self.columns)
        return ["number" if cell.kind == "number" else "" for cell in cells]


@dataclass(frozen=True)
class Plot:
    """A picture; `caption` says what it shows, `alternative` describes it for readers who can't see it."""

    title: str
    svg: Markup
    caption: str
    alternative: str


@dataclass(frozen=True)
class Plots:
    """Pictures side by side, as many as there is room for. `caption` is about all of them."""

    plots: Sequence[Plot]
    caption: str = ""
    kind: ClassVar[str] = "plots"


@dataclass(frozen=True)
class Folded:
    """Content that only some readers want to open."""

    title: str
    blocks: Sequence[Table | Plots]
    kind: ClassVar[str] = "folded"


@dataclass(frozen=True)
class Section:
    """A section. Without blocks it was not measured. `steps` names the steps of a run that it needs: with
    them the page finds the reasons for gaps in the list of skipped steps.
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
