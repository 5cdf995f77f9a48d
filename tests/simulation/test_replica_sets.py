"""Worlds of replica sets: nothing goes wrong, and a seed gives the same world again."""

from __future__ import annotations

import pytest

from tests.seeds import seed_for
from tests.simulation.replica_sets.world import RUINED, simulate_set
from tests.simulation.society import WorldOutcome

STORM_SECONDS = 12.0


def simulate(seed: int, machines: int) -> WorldOutcome:
    world = simulate_set(seed, machines, storm_seconds=STORM_SECONDS)
    assert world.is_good, "\n".join(world.wrong)
    return world


@pytest.mark.parametrize("machines", [2, 3])
def test_a_follower_is_as_its_leader_and_goes_on_without_it(machines: int) -> None:
    world = simulate(seed_for(f"a set of {machines}"), machines)
    assert world.coverage.counts[RUINED] == 1


def test_a_world_is_the_same_again() -> None:
    seed = seed_for("a set")
    first, again = (simulate(seed, machines=2) for _ in range(2))
    assert first.machines[0].digest == again.machines[0].digest
    assert first.coverage.counts == again.coverage.counts
