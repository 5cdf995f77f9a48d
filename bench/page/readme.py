"""The README's tables, each from a result file alone; a test compares them with the committed ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.late.results import LateResults
from bench.late.table import BEGIN as OF_LATE
from bench.late.table import markdown
from bench.page.figures import (
    committed_mb_per_second,
    idle_mib,
    latency_ms,
    loaded_mib,
    produced_mb_per_second,
    row_of,
    rows_per_second,
    stalled_p99_ms,
    transactions_per_second,
)
from bench.page.spark_figures import batch_rows_per_second, stream_rows_per_second, written_per_second
from bench.results import Results, Start

BEGIN = "<!-- figures of bench/results/full.json; made by `python -m bench readme` -->"
END = "<!-- end of figures -->"
SYSTEMS = {
    "local-copy fsync": "faircopy, `fsync`",
    "local-copy os": "faircopy, `os`",
    "kafka": "Kafka",
    "kafka fsync": "Kafka, fsync",
}
MISSING = "–"

MILLION_ROWS = written_per_second(1_000_000, "padded")

Shown = Callable[[Results, str], str]


def table(results: Results) -> str:
    """The lines between the markers, as Markdown."""
    lines = [
        f"| | {' | '.join(SYSTEMS.values())} |",
        "|---|" + "--:|" * len(SYSTEMS),
        *(f"| {name} | {' | '.join(show(results, system) for system in SYSTEMS)} |" for name, show in ROWS),
    ]
    return "\n".join(lines)


def with_tables(readme: str, results: Results, late: LateResults) -> str:
    """The README with the tables of these results. Raises ValueError if it lacks the markers of one."""
    return replaced(replaced(readme, BEGIN, table(results)), OF_LATE, markdown(late))


def replaced(readme: str, marker: str, lines: str) -> str:
    """The README with other lines between a marker and the next END. Raises ValueError without markers."""
    before, begin, rest = readme.partition(marker)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README lacks {marker!r}, or {END!r} after it")
    return f"{before}{begin}\n\n{lines}\n\n{end}{after}"


def pair(which: str) -> Shown:
    """The median and the 99th percentile of a latency."""

    def show(results: Results, system: str) -> str:
        return " / ".join(
            text(latency_ms(which, percentile)(results, system)) for percentile in ("p50_ms", "p99_ms")
        )

    return show


def one(figure: Callable[[Results, str], float | None]) -> Shown:
    """A cell with a single figure."""
    return lambda results, system: text(figure(results, system))


def memory(results: Results, system: str) -> str:
    """Memory when idle and at its peak, in MiB."""
    return f"{text(idle_mib(results, system))} / {text(loaded_mib(results, system))}"


def starts(results: Results, system: str) -> str:
    """Medians of a start on an empty directory and of a restart, in seconds."""
    row = row_of(results, Start, system)
    if row is None:
        return MISSING
    return f"{text(statistics.median(row.cold_seconds))} / {text(statistics.median(row.restart_seconds))}"


def spark_reads(results: Results, system: str) -> str:
    """Rows a second that Spark reads in a batch, and in a stream."""
    batch, stream = batch_rows_per_second(results, system), stream_rows_per_second(results, system)
    return MISSING if batch is None and stream is None else f"{text(batch)} / {text(stream)}"


def text(value: float | None) -> str:
    """A figure with two significant digits, or more if it is large."""
    if value is None:
        return MISSING
    if value >= 10_000:
        return f"{value / 1000:,.0f}k" if value < 1e6 else f"{value / 1e6:.2f}M"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


ROWS: list[tuple[str, Shown]] = [
    ("commit call to ack, 4 partitions, p50 / p99 ms", pair("commit_to_ack")),
    ("the same, all flushed before the call", pair("flushed_commit_to_ack")),
    ("send to delivery in such transactions, p50 / p99 ms", pair("end_to_end")),
    ("others' delivery while a transaction hangs for 30 s, p99 ms", one(stalled_p99_ms)),
    ("transactions of one message, one producer, 1/s", one(transactions_per_second(1, 1))),
    ("plain produce, 1 KiB, MB/s", one(produced_mb_per_second)),
    ("the same with a commit each 100 ms", one(committed_mb_per_second)),
    ("committed rows read, 50 % aborted, 1/s", one(rows_per_second)),
    ("PySpark reads by our source, or Spark's for Kafka: batch / stream, 1/s", spark_reads),
    ("PySpark writes a million rows by our sink, or Spark's for Kafka, 1/s", one(MILLION_ROWS)),
    ("memory idle / at its peak, MiB", memory),
    ("first start / restart after `kill -9`, s", starts),
]
