"""Seeds in parts of 25, which the processes of one run of the tests share.

Each part leaves what came of it in a directory of the run. Whoever needs it later reads that; whoever needs a
part that another process works on waits for it. So no part is run twice, and it doesn't matter who runs which
part, in which order, or whether anybody else runs at all.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.simulation.coverage import Coverage
from tests.simulation.outcome import Outcome
from tests.simulation.run import simulate

FINDINGS_SHOWN = 5


class Part(NamedTuple):
    """What came of some seeds: what is wrong, in lines to print, and what they met."""

    wrong: list[str]
    coverage: dict[str, int]


def part_of(directory: Path, number: int, seeds: Sequence[int]) -> Part:
    """What came of a part: run now, unless it was run by somebody who shares the directory."""
    left = directory / f"seeds-{number}.json"
    with (directory / f"seeds-{number}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not left.exists():
            unfinished = left.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(run(seeds)))
            unfinished.replace(left)
        return Part(*json.loads(left.read_text()))


def run(seeds: Iterable[int]) -> Part:
    """Run these seeds, one after the other."""
    wrong: list[str] = []
    coverage = Coverage()
    for seed in seeds:
        outcome = simulate(seed)
        coverage.add(outcome.coverage)
        wrong += wrong_with(outcome)
    return Part(wrong, dict(coverage.counts))


def wrong_with(outcome: Outcome) -> list[str]:
    """What is wrong with a seed, and how to repeat it; nothing if it is good."""
    if outcome.is_good:
        return []
    return [*found_in(outcome), again_with(outcome.seed, has_arbiter=outcome.has_arbiter)]


def found_in(outcome: Outcome) -> list[str]:
    """What is wrong with a seed; nothing if it is good."""
    if outcome.is_good:
        return []
    found = [*outcome.failures, *map(str, outcome.checked.findings)][:FINDINGS_SHOWN]
    return [f"seed {outcome.seed}: {outcome.checked.verdict.value}", *(f"  {line}" for line in found)]


def again_with(seed: int, *, has_arbiter: bool) -> str:
    """How to repeat a seed."""
    return f"  again: make simulate SEED={seed}{' ARBITER=1' if has_arbiter else ''}"


def missed_by(parts: Iterable[Part]) -> list[str]:
    """What all these parts together never met."""
    together = Coverage()
    for part in parts:
        together.counts.update(part.coverage)
        together.announce(*part.coverage)
    return together.missed
