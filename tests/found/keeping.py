"""Keeps what was found: a file for each finding, which says what to play."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.crash_states.sweep import Bounds

FOUND = Path(__file__).parent
SAID_MAX = 5


def keep_seed(
    seed: int, said: Sequence[str], directory: Path = FOUND, *, has_arbiter: bool = False, machines: int = 1
) -> Path:
    """Keep a seed of the simulation, with the first lines of what was wrong. Returns the new file."""
    kind = f"{'-arbiter' if has_arbiter else ''}{f'-{machines}-machines' if machines > 1 else ''}"
    facts: dict[str, object] = {"seed": seed, "has_arbiter": has_arbiter, "machines": machines}
    return write(directory / f"simulation{kind}-{seed}.json", facts, said)


def keep_workload(
    steps: Sequence[str],
    seed: int,
    shards: int,
    bounds: Bounds,
    said: Sequence[str],
    directory: Path = FOUND,
) -> Path:
    """Keep a workload that did not survive each crash, by the names of its steps. Returns the new file."""
    facts = {"steps": list(steps), "seed": seed, "shards": shards}
    disk = {"is_slow": bounds.is_slow, "is_durable": bounds.is_durable}
    return write(directory / f"crash-states-{'-'.join(steps)}-{seed}-{shards}.json", facts | disk, said)


def write(file: Path, facts: dict[str, object], said: Sequence[str]) -> Path:
    """Write what to play, and what was wrong with it."""
    file.write_text(json.dumps(facts | {"said": list(said)[:SAID_MAX]}, indent=2) + "\n")
    return file
