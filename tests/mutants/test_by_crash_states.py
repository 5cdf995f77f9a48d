"""Mutants that a workload's crash states find (tests/crash_states)."""

from __future__ import annotations

import pytest

from tests.crash_states.scenarios import Step
from tests.crash_states.sweep import Bounds, sweep
from tests.mutants.found_by import BY_CRASH_STATES
from tests.mutants.in_child import is_found
from tests.mutants.tries import first_then

SWEEPS_MAX = 10


def goes_wrong(steps: tuple[Step, ...], seed: int) -> bool:
    """Whether recovery goes wrong in any of the states that this sweep tries."""
    return any(sweep(steps, seed, Bounds(second=0)))


@pytest.mark.parametrize("name", BY_CRASH_STATES)
def test_crash_states_find(name: str) -> None:
    steps, first = BY_CRASH_STATES[name]
    seeds = first_then(first, SWEEPS_MAX)
    assert is_found(name, lambda: any(goes_wrong(steps, seed) for seed in seeds))


@pytest.mark.parametrize("name", BY_CRASH_STATES)
def test_nothing_goes_wrong_without_a_mutant(name: str) -> None:
    assert not goes_wrong(*BY_CRASH_STATES[name])
