"""Latency of transactions."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.page.document import Cell, Folded, Plots, Section, Table, number, system
from bench.page.numerals import counted
from bench.page.palette import in_order
from bench.page.percentiles import percentile_plot
from bench.results import Histogram, Latency, Results

Row = dict[str, Latency]
LatencyCell = tuple[int, int, int]  # partitions, producers, pause in milliseconds
COMMIT = (
    "The call of commit until its ack. Lower is better, and a steep end is a long tail. "
    "Marks are at 50 and 99 %."
)
FLUSHED = "The same when all messages were acked before: a round trip and what the protocol makes durable."
VISIBLE = "How long the consumer still waits after the ack. Systems that publish after they ack pay here."
END_TO_END = (
    "From the send of each message to its delivery to a consumer that sees committed data only: what users "
    "feel."
)


def latency(results: Results) -> Section:
    """Percentile curves of the main cells; all cells and a table in folds."""
    rows: list[Latency] = results.of(Latency)
    return Section(
        "latency",
        "Latency of transactions",
        [
            "Each transaction has one message in each of its partitions. In half of them commit is called "
            "right after the last send, so the time from that call to its ack has the registration of the "
            "partitions, the acks of the messages and the commit itself. The other half is flushed before "
            "the call, so only the commit is left. Transactions follow one another at once, unless a pause "
            "is named: with some protocols a transaction that begins early waits for the last one's markers.",
        ],
        blocks(by_cell(rows)) if rows else [],
        in_order(row.system for row in rows),
        ("latency", "systems", "system"),
    )


def blocks(cells: dict[LatencyCell, Row]) -> list[Table | Plots | Folded]:
    """Plots of the main cells, then the folded parts."""
    main, others = chosen(list(cells))
    found: list[Table | Plots | Folded] = [
        plots(cells, main, "commit", "Commit call to ack", commit_to_ack, COMMIT),
        plots(
            cells,
            main[:2],
            "flushed",
            "Flushed commit to ack",
            lambda row: row.flushed_commit_to_ack,
            FLUSHED,
        ),
        plots(cells, main, "end", "Send to delivery", lambda row: row.end_to_end, END_TO_END),
        plots(cells, main[:2], "visible", "Ack to visible", lambda row: row.ack_to_visible, VISIBLE),
    ]
    if others:
        other = plots(cells, others, "commit", "Commit call to ack", commit_to_ack)
        found.append(Folded("Other numbers of partitions and producers", [other]))
    return [*found, Folded("All figures", [table(cells)])]


def commit_to_ack(row: Latency) -> Histogram:
    """The distribution from the call of commit to its ack."""
    return row.commit_to_ack


def by_cell(rows: list[Latency]) -> dict[LatencyCell, Row]:
    """The systems' rows of each (partitions, producers), in the page's order."""
    order = in_order(row.system for row in rows)
    found: dict[LatencyCell, Row] = {}
    for row in sorted(rows, key=lambda row: (*cell_of(row), order.index(row.system))):
        found.setdefault(cell_of(row), {})[row.system] = row
    return found


def cell_of(row: Latency) -> LatencyCell:
    """The cell of a row: partitions, producers, pause in ms."""
    return row.partitions, row.producers, row.pause_ms


def chosen(cells: list[LatencyCell]) -> tuple[list[LatencyCell], list[LatencyCell]]:
    """The main cells, which are the corners of the grid and the one that is measured most, and the others."""
    partitions, producers = ([cell[which] for cell in cells] or [0] for which in (0, 1))
    corners = {(4, 1), (min(partitions), 1), (max(partitions), 1), (4, max(producers))}
    main = [cell for cell in cells if cell[:2] in corners]
    main = sorted(main, key=lambda cell: (cell[:2] != (4, 1), cell)) or cells[:4]
    return main, [cell for cell in cells if cell not in main]


def plots(
    cells: dict[LatencyCell, Row],
    which: list[LatencyCell],
    name: str,
    title: str,
    measure: Callable[[Latency], Histogram],
    caption: str = "",
) -> Plots:
    """One plot for each cell."""
    return Plots(
        [
            percentile_plot(
                f"latency-{name}-{partitions}-{producers}-{pause_ms}",
                f"{title}: {counted(partitions, 'partition')}, "
                f"{counted(producers, 'producer')}{paused(pause_ms)}",
                {system: measure(row) for system, row in cells[partitions, producers, pause_ms].items()},
                "",
            )
            for partitions, producers, pause_ms in which
        ],
        caption,
    )


def paused(pause_ms: int) -> str:
    """The pause between transactions as the end of a title."""
    return f", pauses of {pause_ms} ms" if pause_ms else ""


def table(cells: dict[LatencyCell, Row]) -> Table:
    """A line for each system in each cell."""
    columns = [
        "Partitions", "Producers", "Pause, ms", "System", "Transactions/s", "Commit p50, ms", "p99", "p99.9",
        "max",
        "Flushed commit p50, ms", "p99",
        "Ack to visible p50, ms", "p99", "End to end p50, ms", "p99", "Transactions", "Rounds",
    ]  # fmt: skip
    rows = [line(row) for cell in cells.values() for row in cell.values()]
    return Table("Medians of the rounds where there are several.", columns, rows)


def line(row: Latency) -> list[Cell]:
    """One system in one cell."""
    commit, flushed, visible, end_to_end = (
        row.commit_to_ack, row.flushed_commit_to_ack, row.ack_to_visible, row.end_to_end,
    )  # fmt: skip
    figures = (
        statistics.median(row.per_second), commit.p50_ms, commit.p99_ms, commit.p999_ms, commit.max_ms,
        flushed.p50_ms, flushed.p99_ms,
        visible.p50_ms, visible.p99_ms, end_to_end.p50_ms, end_to_end.p99_ms, row.transactions, row.rounds,
    )  # fmt: skip
    counts = [Cell(f"{count}", "number") for count in cell_of(row)]
    return [*counts, system(row.system), *map(number, figures)]
