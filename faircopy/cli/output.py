"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

BROKER = "127.0.0.1:9092"


def broker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that says which broker to ask."""
    return click.option(
        "-b",
        "--broker",
        default=BROKER,
        show_default=True,
        envvar="FAIRCOPY_BROKER",
        metavar="HOST:PORT",
        help="The broker to ask.",
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option to print JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def asks_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Both options, for commands that ask a broker and print what it says."""
    return functools.reduce(lambda made, option: option(made), (json_option, broker_option), command)


def show(rows: Sequence[dict[str, Any]], as_json: bool, *, empty: str, title: str | None = None) -> None:
    """Print rows of one shape, as a table or as a JSON array."""
    if as_json:
        click.echo(json.dumps(list(rows), indent=2 if sys.stdout.isatty() else None))
        return
    if not rows:
        click.echo(empty)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in rows[0]:
        right = all(isinstance(row[column], (int, float)) and not isinstance(row[column], bool) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    Console(soft_wrap=not sys.stdout.isatty()).print(table)


def show_lines(rows: Sequence[dict[str, Any]], as_json: bool, *, empty: str) -> None:
    """Print rows as lines that are as long as they need to be, or as a JSON array: for dumps."""
    if as_json or not rows:
        show(rows, as_json, empty=empty)
        return
    is_number = {name: all(isinstance(row[name], int | None) for row in rows) for name in rows[0]}
    lines = [[name.replace("_", " ") for name in rows[0]], *([cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = [
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(line, widths, is_number.values(), strict=True)
        ]
        click.secho("  ".join(cells).rstrip(), bold=True if number == 0 else None)


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def say(what: dict[str, Any], as_json: bool, sentence: str) -> None:
    """Print the outcome of one action: a sentence, or a JSON object."""
    click.echo(json.dumps(what) if as_json else sentence)


def printable(text: str) -> str:
    """Text that clients sent, without what a terminal would take for commands."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def moment(time_ms: int) -> str:
    """A time as people say it, UTC; the number where there is no such time."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def duration(milliseconds: float) -> str:
    """A time span as people say it."""
    seconds = milliseconds / 1000
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def size(byte_count: int) -> str:
    """A size as people say it."""
    amount = float(byte_count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
