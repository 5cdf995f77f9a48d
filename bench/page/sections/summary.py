"""What was aimed at, and what came of it."""

from __future__ import annotations

from collections import Counter

from bench.page.document import Cell, Section, Table, number
from bench.page.targets import Target, targets
from bench.results import Results

KINDS = {"met": "good", "missed": "bad", "not measured": "quiet"}


def summary(results: Results) -> Section:
    """The table of targets."""
    found = targets(results)
    return Section(
        "summary",
        "Targets",
        [
            "faircopy is the system local-copy: under fsync, its default, and under os, where the page cache is "
            "enough. Kafka is Apache Kafka with its own defaults, which do not fsync.",
            sentence(found),
        ],
        [table(found)],
    )


def sentence(found: list[Target]) -> str:
    """How many were met."""
    counts = Counter(each.verdict for each in found)
    return f"{counts['met']} met, {counts['missed']} missed, {counts['not measured']} not measured in this run."


def table(found: list[Target]) -> Table:
    """A row for each target."""
    columns = ["Figure", "Durability", "Unit", "faircopy", "Kafka", "Ratio", "Aim", "Verdict"]
    return Table(
        "The ratio is what is held against the aim: to Kafka's figure, or to what the aim names.",
        columns,
        [row(each) for each in found],
        is_cards=True,
    )


def row(each: Target) -> list[Cell]:
    return [
        Cell(each.figure, "heading"),
        Cell(each.durability),
        Cell(each.unit, "quiet"),
        number(each.ours),
        number(each.kafka),
        number(each.ratio),
        Cell(each.aim, "quiet"),
        Cell(each.verdict, KINDS[each.verdict]),
    ]
