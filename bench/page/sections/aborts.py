"""What aborted transactions cost readers."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.page.document import Plot, Plots, Section
from bench.page.lines import line_plot
from bench.page.palette import in_order
from bench.results import AbortCost, Results

CAPTION = (
    "If aborted messages stay in the log, a consumer fetches and drops them: its bytes for each committed "
    "message grow with the aborted share. If they never enter the log, the first line falls only because "
    "there is less to read, and the others are flat."
)


def aborts(results: Results) -> Section:
    """Rate, bytes on the wire and bytes on disk over the aborted share."""
    rows: list[AbortCost] = results.of(AbortCost)
    return Section(
        "aborts",
        "The cost of aborts",
        [
            "A log with a fixed number of messages, a part of which belongs to aborted transactions, is read "
            "from its start."
        ],
        [Plots(plots(rows), CAPTION)] if rows else [],
        in_order(row.system for row in rows),
        ("aborts", "systems", "system"),
    )


def plots(rows: list[AbortCost]) -> list[Plot]:
    """Rate of reading, bytes to the consumer and bytes on disk, over the share of aborted messages."""
    return [
        plot(
            rows, "aborts-rate", "Committed messages read", "messages a second",
            lambda row: row.delivered / statistics.median(row.seconds),
        ),
        plot(
            rows, "aborts-wire", "Bytes to the consumer", "bytes per committed byte",
            lambda row: row.wire_bytes / (row.delivered * row.message_bytes),
        ),
        plot(
            rows, "aborts-log", "The log on disk", "bytes per committed byte",
            lambda row: row.log_bytes / (row.delivered * row.message_bytes),
        ),
        plot(
            rows, "aborts-disk", "All on disk", "bytes per committed byte",
            lambda row: row.disk_bytes / (row.delivered * row.message_bytes),
        ),
    ]  # fmt: skip


def plot(
    rows: list[AbortCost], name: str, title: str, label: str, measure: Callable[[AbortCost], float]
) -> Plot:
    """One measure over the share of aborted messages."""
    lines = {
        system: sorted(
            (row.aborted_percent, measure(row)) for row in rows if row.system == system and row.delivered
        )
        for system in in_order(row.system for row in rows)
    }
    found = {system: points for system, points in lines.items() if points}
    return line_plot(name, title, found, ("aborted, %", label), show_x=lambda percent: f"{percent:g}")
