"""How fresh plain tables are: after many publications, and with many topics."""

from __future__ import annotations

from bench.page.document import Cell, Section, Table, number, system
from bench.page.palette import in_order
from bench.results import PlainFreshness, PlainGrowth, Results


def plain_tables(results: Results) -> Section:
    """A line for each size of a table, and one for many topics."""
    grown: list[PlainGrowth] = results.of(PlainGrowth)
    fresh: list[PlainFreshness] = results.of(PlainFreshness)
    return Section(
        "plain-tables",
        "Plain tables",
        ["A table must stay as fresh as on its first day, and one of many tables as fresh as an only one."],
        [*([growth(grown)] if grown else []), *([freshness(fresh)] if fresh else [])],
        in_order([*(row.system for row in grown), *(row.system for row in fresh)]),
        ("plain tables",),
    )


def growth(rows: list[PlainGrowth]) -> Table:
    """What a publication takes while a table grows."""
    lines = [
        [
            system(row.system),
            Cell(f"{row.publications:,}", "number"),
            number(row.median_seconds * 1e3),
            number(row.mean_seconds * 1e3),
        ]
        for row in rows
    ]
    caption = (
        "One table that is published to again and again, by a clock that goes faster. Each line is of the "
        "publications since the line before; the mean includes what is merged and deleted meanwhile."
    )
    return Table(caption, ["System", "Publications so far", "Median, ms", "Mean, ms"], lines)


def freshness(rows: list[PlainFreshness]) -> Table:
    """How old messages are when tables show them."""
    lines = [
        [
            system(row.system),
            Cell(f"{row.topics:,}", "number"),
            Cell(f"{row.messages:,}", "number"),
            number(row.interval_seconds),
            number(row.p50_seconds),
            number(row.p99_seconds),
        ]
        for row in rows
    ]
    caption = (
        "Each topic has a table of its own, and gets a message each second. With publications in time, the "
        "median age is half an interval, and none is much older than one."
    )
    columns = ["System", "Topics", "Messages", "Interval, s", "Age p50, s", "p99"]
    return Table(caption, columns, lines)
