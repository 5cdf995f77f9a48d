"""The result file of `python -m bench late`, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.late.verdict import Verdict
from bench.results import System

FORMAT = 1


@dataclass(frozen=True)
class Row:
    """One system: for how long it was written to, what came late, and what became of the transactions."""

    system: System
    seconds: float
    late: dict[str, int]
    verdict: Verdict


@dataclass(frozen=True)
class LateResults:
    """A run: the machine, versions and settings, and a row for each system."""

    about: dict[str, Any]
    rows: list[Row]


def save(results: LateResults, path: Path) -> None:
    """Write a result file."""
    path.write_text(json.dumps({"format": FORMAT, **asdict(results)}, indent=1) + "\n")


def load(path: Path) -> LateResults:
    """Read a result file. Raises ValueError if it has another format."""
    found = json.loads(path.read_text())
    if found["format"] != FORMAT:
        raise ValueError(f"{path} has format {found['format']}, and this knows format {FORMAT}: run it again")
    rows = [
        Row(System(**row["system"]), row["seconds"], row["late"], Verdict(**row["verdict"]))
        for row in found["rows"]
    ]
    return LateResults(found["about"], rows)
