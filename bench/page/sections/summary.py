"""The targets, and whether they were met."""

from __future__ import annotations

from collections import Counter

from bench.page.document import Cell, Section, Table, number
from bench.page.limits import Limit, limits
from bench.page.targets import Target, targets
from bench.results import Results

KINDS = {"met": "good", "missed": "bad", "not measured": "quiet"}


def summary(results: Results) -> Section:
    """The table of targets, compared with Kafka, and the table of limits, compared with this machine."""
    found, beside_machine = targets(results), limits(results)
    return Section(
        "summary",
        "Targets",
        [
            "faircopy is the system local-copy: under fsync, its default, and under os, where the page cache "
            "is enough. Kafka is Apache Kafka with its own defaults, which do not fsync.",
            sentence(found),
        ],
        [table(found), *([limit_table(beside_machine)] if beside_machine else [])],
    )


def sentence(found: list[Target]) -> str:
    """How many were met."""
    counts = Counter(each.verdict for each in found)
    return (
        f"{counts['met']} met, {counts['missed']} missed, {counts['not measured']} not measured in this run."
    )


def table(found: list[Target]) -> Table:
    """A row for each target."""
    columns = ["Figure", "Durability", "Unit", "faircopy", "Kafka", "Floor", "Ratio", "Aim", "Verdict"]
    return Table(
        "The aim limits the ratio, which is to Kafka's figure, or to the reference that the aim names. The "
        "floor is the system none with the same durability, a broker that runs no transactions: it shows the "
        "time that the client itself takes.",
        columns,
        [row(each) for each in found],
        is_cards=True,
    )


def row(each: Target) -> list[Cell]:
    """One target under one durability."""
    return [
        Cell(each.figure, "heading"),
        Cell(each.durability),
        Cell(each.unit, "quiet"),
        number(each.ours),
        number(each.kafka),
        number(each.floor),
        number(each.ratio),
        Cell(each.aim, "quiet"),
        Cell(each.verdict, KINDS[each.verdict]),
    ]


def limit_table(found: list[Limit]) -> Table:
    """A row for each limit."""
    columns = ["Figure", "faircopy", "Unit", "Ratio", "To", "Aim", "Verdict"]
    return Table(
        "faircopy compared with the bare machine. The ratio, if there is one, is to a floor of the machine "
        "or to another figure of the same run.",
        columns,
        [limit_row(each) for each in found],
        is_cards=True,
    )


def limit_row(each: Limit) -> list[Cell]:
    """One limit."""
    return [
        Cell(each.figure, "heading"),
        number(each.measured),
        Cell(each.unit, "quiet"),
        number(each.ratio),
        Cell(each.floor, "quiet"),
        Cell(each.aim, "quiet"),
        Cell("met", "good") if each.is_met else Cell("missed", "bad"),
    ]
