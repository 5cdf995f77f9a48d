"""Full speed: one producer, then one consumer."""

from __future__ import annotations

import statistics

from bench.page.bars import bar_plot
from bench.page.document import Cell, Folded, Plot, Plots, Section, Table, number, system
from bench.page.numerals import MIB, size
from bench.page.palette import in_order
from bench.results import Results, Throughput

TITLE = "Throughput"
STEPS = ("throughput", "systems", "system")
MAIN_BYTES = 1024
PRODUCE = "One producer at full speed; longer is better. The thin line spans the rounds."
CONSUME = "One consumer that reads all produced messages; longer is better."


def throughput(results: Results) -> Section:
    """Bars for each commit interval with one size of message, and everything else in folds."""
    rows: list[Throughput] = results.of(Throughput)
    sizes = sorted({row.message_bytes for row in rows}, key=lambda size: (size != MAIN_BYTES, size))
    if not rows:
        return Section("throughput", TITLE, [], [], steps=STEPS)
    folded = [Folded(f"Messages of {size(each)}", bars(rows, each)) for each in sizes[1:]]
    return Section(
        "throughput",
        TITLE,
        ["Hatched bars are systems that do not fsync. CPU, memory and writes are the broker's alone."],
        [
            *bars(rows, sizes[0]),
            *folded,
            Folded("All figures, with CPU, memory and bytes written", [table(rows)]),
        ],
        in_order(row.system for row in rows),
        STEPS,
    )


def bars(rows: list[Throughput], message_bytes: int) -> list[Plots]:
    """Produced and consumed, for each commit interval."""
    intervals = sorted({row.commit_every_ms for row in rows if row.message_bytes == message_bytes})
    produced = [
        plot(rows, (message_bytes, each), "produced_bytes_per_second", "Produced") for each in intervals
    ]
    consumed = [
        plot(rows, (message_bytes, each), "consumed_bytes_per_second", "Consumed") for each in intervals
    ]
    return [Plots(produced, PRODUCE), Plots(consumed, CONSUME)]


def load_name(message_bytes: int, commit_every_ms: int) -> str:
    """A load as a title names it."""
    commits = f"a commit each {commit_every_ms:,} ms" if commit_every_ms else "no transactions"
    return f"{size(message_bytes)}, {commits}"


def plot(rows: list[Throughput], cell: tuple[int, int], measure: str, what: str) -> Plot:
    """One bar for each system."""
    found = {row.system: row for row in rows if (row.message_bytes, row.commit_every_ms) == cell}
    rounds = {name: [each / 1e6 for each in getattr(found[name], measure)] for name in in_order(found)}
    name = "throughput-{}-{}-{}".format(what.lower(), *cell)
    return bar_plot(name, f"{what}: {load_name(*cell)}", rounds, "MB/s")


def table(rows: list[Throughput]) -> Table:
    """Speed and cost of each load with each system."""
    columns = [
        "Message", "Commit each, ms", "System", "Produced, MB/s", "Consumed, MB/s",
        "CPU s per million messages",
        "Peak memory, MiB", "Bytes written per byte",
    ]  # fmt: skip
    order = in_order(row.system for row in rows)
    ordered = sorted(rows, key=lambda row: (row.message_bytes, row.commit_every_ms, order.index(row.system)))
    caption = (
        "Bytes written per byte is 1 where messages are written once, and 2 where they are journaled and "
        "copied."
    )
    return Table(caption, columns, [line(row) for row in ordered])


def line(row: Throughput) -> list[Cell]:
    """One load with one system; medians of its rounds."""
    commits = f"{row.commit_every_ms:,}" if row.commit_every_ms else "none"
    figures = (
        statistics.median(row.produced_bytes_per_second) / 1e6,
        statistics.median(row.consumed_bytes_per_second) / 1e6,
        statistics.median(row.cpu_seconds_per_million),
        row.peak_memory_bytes / MIB,
        statistics.median(row.written_per_byte),
    )
    return [Cell(size(row.message_bytes)), Cell(commits, "number"), system(row.system), *map(number, figures)]
