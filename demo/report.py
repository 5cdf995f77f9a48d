"""The demo's report: what was sent, what each reader saw, and whether that is as it should be."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.table import Table

from demo.tally import Tally


class Row(NamedTuple):
    """One line. With `expected`, it is a check."""

    what: str
    value: Any
    expected: int | None = None

    @property
    def is_right(self) -> bool:
        """Whether the value is as expected; a line without an expectation always is."""
        return self.expected is None or self.value == self.expected


def rows_of(tally: Tally, flights: int, seconds: float) -> list[Row]:
    """The report."""
    reader, spark = tally.reader, tally.spark
    rows = [
        Row("flights sent", tally.loaded),
        Row("flights committed", sum(tally.offsets), flights),
        Row("transactions committed / aborted", f"{len(tally.committed):,} / {tally.aborted:,}"),
        Row("workers killed with kill -9", tally.crashed),
        Row("plain consumer: whole flights seen", reader["flights"], flights),
        Row("plain consumer: half flights", reader["half_flights"], 0),
        Row("plain consumer: messages seen twice", reader["twice"], 0),
        Row("plain consumer: messages of aborted transactions", reader["of_aborted"], 0),
    ]
    if spark:
        rows.append(
            Row(
                f"Spark {tally.spark_version}: flights joined from two plain tables", spark["joined"], flights
            )
        )
        rows.append(Row("Spark: arrivals more than 15 minutes late", spark["late"]))
    return [
        *rows,
        Row("commit latency, p50 / p99", two(tally.commit_ms)),
        Row("copy lag (ack to delivered), p50 / p99", two(tally.copy_lag_ms())),
        Row("seconds in all", round(seconds, 1)),
    ]


def table_of(rows: list[Row]) -> Table:
    """The report for people."""
    table = Table("what", "how much", "as it should be", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        verdict = "[green]yes[/]" if row.is_right else f"[red]no: {row.expected:,}[/]"
        value = f"{row.value:,}" if isinstance(row.value, int) else str(row.value)
        table.add_row(row.what, value, "" if row.expected is None else verdict)
    return table


def two(values: list[float]) -> str:
    """Median and 99th percentile."""
    ordered = sorted(values)
    if not ordered:
        return "-"
    at_99_percent = min(len(ordered) * 99 // 100, len(ordered) - 1)
    return f"{ordered[len(ordered) // 2]:.1f} / {ordered[at_99_percent]:.1f} ms"
