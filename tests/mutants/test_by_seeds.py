"""Mutants that seeds of the simulation find (tests/simulation)."""

from __future__ import annotations

import pytest

from tests.mutants.found_by import BY_SEEDS, BY_SEEDS_WITH_AN_ARBITER
from tests.mutants.in_child import is_found
from tests.mutants.tries import first_then
from tests.simulation.run import simulate

SEEDS_MAX = 60


@pytest.mark.parametrize("name", BY_SEEDS)
def test_simulation_finds(name: str) -> None:
    seeds = first_then(BY_SEEDS[name], SEEDS_MAX)
    assert is_found(name, lambda: any(not simulate(seed).is_good for seed in seeds))


@pytest.mark.parametrize("name", BY_SEEDS_WITH_AN_ARBITER)
def test_simulation_with_an_arbiter_finds(name: str) -> None:
    seeds = first_then(BY_SEEDS_WITH_AN_ARBITER[name], SEEDS_MAX)
    assert is_found(name, lambda: any(not simulate(seed, has_arbiter=True).is_good for seed in seeds))


@pytest.mark.parametrize("seed", sorted({*BY_SEEDS_WITH_AN_ARBITER.values()}))
def test_the_seed_with_an_arbiter_is_good_without_a_mutant(seed: int) -> None:
    assert simulate(seed, has_arbiter=True).is_good


@pytest.mark.parametrize("seed", sorted({*BY_SEEDS.values()}))
def test_the_seed_is_good_without_a_mutant(seed: int) -> None:
    assert simulate(seed).is_good
