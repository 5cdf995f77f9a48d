"""Plays again what was found: seeds of the simulation, crash states, inputs of the fuzzers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.crash_states import scenarios
from tests.crash_states.sweep import Bounds, sweep
from tests.found.keeping import FOUND
from tests.fuzz.targets import TARGETS
from tests.simulation.run import simulate
from tests.simulation.several import simulate_several

INPUTS = FOUND / "fuzz"


def still_wrong(directory: Path = FOUND) -> Iterator[str]:
    """Play all that was found; tell what is wrong again, with the file's name."""
    for file in sorted(directory.glob("simulation-*.json")):
        yield from (f"{file.name}: {said}" for said in wrong_seed(json.loads(file.read_text())))
    for file in sorted(directory.glob("crash-states-*.json")):
        yield from (f"{file.name}: {said}" for said in wrong_workload(json.loads(file.read_text())))


def wrong_seed(facts: dict[str, Any]) -> list[str]:
    """What is wrong with a run of the simulation."""
    seed, has_arbiter = facts["seed"], facts["has_arbiter"]
    if facts["machines"] > 1:
        return simulate_several(seed, facts["machines"], has_arbiter=has_arbiter).wrong
    outcome = simulate(seed, has_arbiter=has_arbiter)
    return [] if outcome.is_good else [*outcome.failures, *map(str, outcome.checked.findings)]


def wrong_workload(facts: dict[str, Any]) -> list[str]:
    """What is wrong after crashes of a workload."""
    steps = tuple(getattr(scenarios, name) for name in facts["steps"])
    bounds = Bounds(is_slow=facts["is_slow"], is_durable=facts["is_durable"])
    return [str(wrong) for wrong in sweep(steps, facts["seed"], bounds, facts["shards"]) if wrong]


def feed_inputs(directory: Path = INPUTS) -> int:
    """Feed all kept inputs to their targets, which raise what is wrong. Returns their number. Raises KeyError
    for inputs of a target that is gone: whoever renames a target moves its inputs.
    """
    files = sorted(directory.glob("*/*"))
    for file in files:
        TARGETS[file.parent.name].load()(file.read_bytes())
    return len(files)
