"""faircopy beside Kafka: the figures that say most, and who is ahead."""

from __future__ import annotations

from collections import Counter

from bench.page.comparison import COLUMNS, LEVEL, Ahead, Compared, ahead_text, comparison
from bench.page.document import Cell, Section, Table, number
from bench.results import Results

KINDS = {"faircopy": "good", "Kafka": "bad", "level": "quiet"}


def summary(results: Results) -> Section:
    """The table of what was measured of both."""
    found = [each for each in comparison(results) if any(each.ahead)]
    return Section(
        "summary",
        "faircopy and Kafka",
        [
            "faircopy is the system local-copy: under fsync, its default, and under os, where the page cache "
            "is enough. Kafka is Apache Kafka with its own defaults, which do not fsync; with fsync, it "
            "forces each append to the disk.",
            sentence(found),
        ],
        [table(found)] if found else [],
    )


def sentence(found: list[Compared]) -> str:
    """How often who is ahead."""
    counts = Counter(ahead.who for each in found for ahead in each.ahead if ahead is not None)
    if not counts:
        return ""
    return (
        f"Of {counts.total()} comparisons, faircopy is ahead in {counts['faircopy']}, Kafka in "
        f"{counts['Kafka']}, and {counts['level']} are level."
    )


def table(found: list[Compared]) -> Table:
    """A row for each figure."""
    return Table(
        "Those beside each other promise the same. Where Kafka has no figure with fsync, faircopy under "
        "fsync is compared with Kafka as it comes, which promises less. Figures within "
        f"{100 * (LEVEL - 1):.0f} % of each other are level, since rounds of one measure differ by more.",
        COLUMNS,
        [row(each) for each in found],
        is_cards=True,
    )


def row(each: Compared) -> list[Cell]:
    """One figure."""
    cells = [Cell(each.figure, "heading"), Cell(each.unit, "quiet")]
    for (ours, kafka), ahead in zip(each.pairs, each.ahead, strict=True):
        cells += [number(ours), number(kafka), ahead_cell(ahead)]
    return cells


def ahead_cell(ahead: Ahead | None) -> Cell:
    """Who is ahead, in a colour."""
    return Cell(ahead_text(ahead), KINDS[ahead.who] if ahead is not None else "quiet")
