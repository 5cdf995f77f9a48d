"""Starts, restarts after a crash, and memory."""

from __future__ import annotations

from bench.page.bars import bar_plot
from bench.page.document import Plots, Section
from bench.page.numerals import MIB
from bench.page.palette import in_order
from bench.results import Results, Start, Throughput

CAPTION = (
    "Shorter is better. A restart follows kill -9 under load and includes recovery. Thin lines span the "
    "rounds."
)


def starts(results: Results) -> Section:
    """Bars for each system."""
    by_system: dict[str, Start] = {row.system: row for row in results.of(Start)}
    names = in_order(by_system)
    rows = {name: by_system[name] for name in names}
    figures = [
        ("starts-cold", "First start", {name: row.cold_seconds for name, row in rows.items()}, "seconds"),
        (
            "starts-restart",
            "Restart after kill -9",
            {name: row.restart_seconds for name, row in rows.items()},
            "seconds",
        ),
        (
            "starts-idle",
            "Memory when idle",
            {name: [row.idle_memory_bytes / MIB] for name, row in rows.items()},
            "MiB",
        ),
        ("starts-peak", "Memory under load, peak", peaks(results), "MiB"),
    ]
    plots = [
        bar_plot(name, title, rounds, label) for name, title, rounds, label in figures if any(rounds.values())
    ]
    return Section(
        "starts",
        "Starts and memory",
        [
            "From the start of the process until the first client is served, and the resident memory of the "
            "process."
        ],
        [Plots(plots, CAPTION)] if names else [],
        names,
        ("starts",),
    )


def peaks(results: Results) -> dict[str, list[float]]:
    """The greatest memory of each system in the runs of throughput, MiB."""
    rows: list[Throughput] = results.of(Throughput)
    return {
        name: [max(row.peak_memory_bytes for row in rows if row.system == name) / MIB]
        for name in in_order(row.system for row in rows)
    }
