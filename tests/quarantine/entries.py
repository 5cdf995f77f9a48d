"""What is in quarantine: each file with the date and the cause that it must tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Entry(NamedTuple):
    """A test file in quarantine: its name, since when (an ISO date), and what is known of the cause."""

    file: str
    since: str
    cause: str

    def days(self, today: date) -> int:
        """How old it is."""
        return (today - date.fromisoformat(self.since)).days


def entries(directory: Path = HERE) -> Iterator[Entry]:
    """The files of this folder. Raises ValueError for one that does not tell `SINCE` or `CAUSE`."""
    for file in sorted(directory.glob("test_*.py")):
        told = dict(constants(ast.parse(file.read_text())))
        if not told.get("SINCE") or not told.get("CAUSE"):
            raise ValueError(
                f"{file.name} does not tell since when it is in quarantine, and why: SINCE, CAUSE"
            )
        date.fromisoformat(told["SINCE"])
        yield Entry(file.name, told["SINCE"], told["CAUSE"])


def constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The names at the top of a module that stand for a text."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                yield name, text
