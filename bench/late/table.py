"""The table of a run: for the README as Markdown, and for the terminal."""

from __future__ import annotations

from rich.table import Table

from bench.late.results import LateResults, Row

COLUMNS = ("transactions", "late requests", "fatal errors", "torn", "lost", "undead", "repeated")
BEGIN = "<!-- figures of bench/results/late.json; made by `python -m bench readme` -->"


def name_of(row: Row) -> str:
    """A system and its version."""
    return f"{row.system.name} {row.system.version}"


def figures_of(row: Row) -> list[int]:
    """The figures of a row, one for each of COLUMNS."""
    verdict = row.verdict
    return [
        verdict.transactions, sum(row.late.values()), verdict.unknown,
        verdict.torn, verdict.lost, verdict.undead, verdict.repeated,
    ]  # fmt: skip


def markdown(results: LateResults) -> str:
    """The table as Markdown."""
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "--:|" * len(COLUMNS)]
    for row in results.rows:
        lines.append(f"| {name_of(row)} | {' | '.join(f'{each:,}' for each in figures_of(row))} |")
    return "\n".join(lines)


def terminal(results: LateResults) -> Table:
    """The table for a terminal: what broke a promise is red."""
    table = Table("system", *COLUMNS, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in results.rows:
        counts, faults = figures_of(row)[:3], figures_of(row)[3:]
        cells = [f"[red]{each:,}[/]" if each else "0" for each in faults]
        table.add_row(name_of(row), *(f"{each:,}" for each in counts), *cells)
    return table
