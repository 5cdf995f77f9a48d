"""The figures of replica sets, side by side: for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from bench.page.figures import of_some, row_of
from bench.page.numerals import MIB, counted
from bench.page.palette import in_order
from bench.results import Histogram, Results, SetMessages, SetTransactions

Rows = Sequence[Any]


class Line(NamedTuple):
    """One figure of each system, in the order of `set_systems`; None where it was not measured."""

    figure: str
    unit: str
    values: list[float | None]


def set_systems(results: Results) -> list[str]:
    """The names of the systems whose figures these are."""
    return in_order(row.system for row in results.of(SetMessages))


def lines(results: Results) -> list[Line]:
    """All figures: those of each cell, then those of plain messages."""
    cells = dict.fromkeys(
        (row.partitions, row.producers, row.pause_ms) for row in results.of(SetTransactions)
    )
    return [*(each for cell in cells for each in of_cell(results, *cell)), *of_messages(results)]


def of_cell(results: Results, partitions: int, producers: int, pause_ms: int) -> Iterator[Line]:
    """The figures of transactions in one cell."""
    where = {"partitions": partitions, "producers": producers, "pause_ms": pause_ms}
    rows = [row_of(results, SetTransactions, name, **where) for name in set_systems(results)]
    pause = f", a pause of {pause_ms} ms" if pause_ms else ""
    cell = f"{counted(partitions, 'partition')}, {counted(producers, 'producer')}{pause}"
    flushed = f"{cell}: commit, flushed before the call"
    yield from latencies(flushed, rows, lambda row: row.flushed_commit_to_ack)
    yield from latencies(f"{cell}: commit call to ack", rows, lambda row: row.commit_to_ack)
    yield line(f"{cell}: transactions", "1/s", rows, lambda row: median(row.per_second))
    cpu = f"{cell}: CPU of all processes for one"
    yield line(cpu, "ms", rows, lambda row: median(row.cpu_ms_per_transaction))


def of_messages(results: Results) -> Iterator[Line]:
    """The figures of plain messages, and what processes cost."""
    rows = [row_of(results, SetMessages, name) for name in set_systems(results)]
    yield from latencies("one plain message at a time: send to ack", rows, lambda row: row.send_to_ack)
    speed = "plain messages of 1 KiB at full speed"
    yield line(speed, "MB/s", rows, lambda row: median(row.produced_bytes_per_second) / 1e6)
    yield line("CPU of all processes for a GB of these", "s", rows, lambda row: sum(cpu_of(row)))
    memory = "memory of all processes, the sum of their peaks"
    yield line(memory, "MiB", rows, lambda row: sum(row.peak_memory_bytes.values()) / MIB)


def cpu_of(row: SetMessages) -> list[float]:
    """CPU seconds of each process for a GB."""
    return [median(rounds) for rounds in row.cpu_seconds_per_gb.values()]


def line(figure: str, unit: str, rows: Rows, measure: Callable[[Any], float | None]) -> Line:
    """One figure of all systems."""
    return Line(figure, unit, [None if row is None else measure(row) for row in rows])


def latencies(figure: str, rows: Rows, measure: Callable[[Any], Histogram]) -> Iterator[Line]:
    """The median and the 99th percentile."""
    for name in ("p50", "p99"):
        yield line(f"{figure}, {name}", "ms", rows, partial(percentile, measure, f"{name}_ms"))


def percentile(measure: Callable[[Any], Histogram], name: str, row: object) -> float | None:
    """One percentile of a row's histogram."""
    return of_some(measure(row), name)
