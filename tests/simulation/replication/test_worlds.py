"""Worlds of a leader and its followers: every promise is kept, and a seed gives the same world again."""

from __future__ import annotations

import pytest

from tests.seeds import seeds_for
from tests.simulation.replication.world import SERVED, ReplicaOutcome, simulate_replicas

STORM_SECONDS = 12.0


def simulate(seed: int, machines: int) -> ReplicaOutcome:
    outcome = simulate_replicas(seed, machines, STORM_SECONDS)
    again = f"again: python -m tests.simulation.replication --machines {machines} --seed {seed}"
    assert not outcome.failures, "\n".join([*outcome.failures, again])
    return outcome


@pytest.mark.parametrize("machines", [2, 3, 4])
def test_each_machine_has_what_was_promised(machines: int) -> None:
    (seed,) = seeds_for(f"replicas {machines}", 1)
    outcome = simulate(seed, machines)
    assert outcome.promised > 0 and outcome.coverage.counts[SERVED] > 0


def test_a_seed_gives_the_same_world_again() -> None:
    (seed,) = seeds_for("replicas twice", 1)
    first, again = (simulate(seed, machines=3) for _ in range(2))
    assert (first.digest, first.coverage.counts) == (again.digest, again.coverage.counts)
