"""Rows as text: in columns for people, tab-separated for programs.

All rows have the same columns, whose names have units: people see `age_ms` as "1.5 min" below "age", and
programs get the number. Names and data from clients can't send control sequences to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]

FOLDED_ROWS_MAX = 1_000  # folding long values takes rich about a millisecond a row


def printable(text: str) -> str:
    """Text from clients in one line, with the control characters escaped that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


# -- for programs --------------------------------------------------------------------------------------------


def tab_separated(rows: Sequence[Row]) -> str:
    """A line of names, and a line for each row; values are unchanged except for control characters."""
    lines = ["\t".join(rows[0]), *("\t".join(map(plain, row.values())) for row in rows)]
    return "\n".join(lines)


def plain(value: Any) -> str:
    """A value as programs read it; empty if there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return cell(value)
    if isinstance(value, (list, tuple)):
        return printable(",".join(map(str, value)))
    return printable(str(value))


# -- for people ----------------------------------------------------------------------------------------------


def columns(rows: Sequence[Row]) -> str:
    """A table whose lines are as long as they need to be."""
    shapes = [shape_of(name) for name in rows[0]]
    lines = [[heading for heading, _ in shapes], *(cells(row, shapes) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [is_number(rows, name) for name in rows[0]]
    return "\n".join(
        "  ".join(
            value.rjust(width) if is_right else value.ljust(width)
            for value, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def folded(rows: Sequence[Row]) -> Any:
    """A table for rich, which folds long values to the terminal's width."""
    from rich.table import Table
    from rich.text import Text

    shapes = [shape_of(name) for name in rows[0]]
    table = Table(header_style="bold", box=None, pad_edge=False)
    for name, (heading, _) in zip(rows[0], shapes, strict=True):
        table.add_column(heading, justify="right" if is_number(rows, name) else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, cells(row, shapes)))
    return table


def cells(row: Row, shapes: Sequence[tuple[str, Callable[[Any], str]]]) -> list[str]:
    """The values of a row as text, each formatted by the function of its column."""
    return [shape(value) for value, (_, shape) in zip(row.values(), shapes, strict=True)]


def is_number(rows: Sequence[Row], name: str) -> bool:
    """Whether a column holds nothing but numbers and gaps, so that it is aligned to the right."""
    return all(isinstance(row[name], int | float | None) and not isinstance(row[name], bool) for row in rows)


def shape_of(name: str) -> tuple[str, Callable[[Any], str]]:
    """The heading of a column, and the function that formats its values."""
    if name == "time_ms":
        return "time", moment
    if name.endswith("_since_ms"):
        return name.removesuffix("_ms").replace("_", " "), moment
    if name.endswith("_id"):
        return name.replace("_", " "), plain
    for unit, shape in (("_ms", duration), ("_bytes", size)):
        if name.endswith(unit):
            return name.removesuffix(unit).replace("_", " "), measured(shape)
    return name.replace("_", " "), cell


def measured(shape: Callable[[Any], str]) -> Callable[[Any], str]:
    """`shape` for numbers; other values are shown as they are."""
    return lambda value: shape(value) if isinstance(value, int | float) else cell(value)


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
        return printable(", ".join(map(str, value))) or "-"
    return printable(str(value))


def moment(time_ms: int) -> str:
    """A time as people write it, in UTC; the number if there is no such time."""
    try:
        return (
            datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
        )
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def duration(milliseconds: float) -> str:
    """A duration as people write it."""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def size(byte_count: float) -> str:
    """A size as people write it."""
    amount = float(byte_count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
