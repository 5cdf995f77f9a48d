"""Worlds of several machines, from one seed: a third of them are one replica set each."""

from __future__ import annotations

import random

from tests.simulation.replica_sets.world import simulate_set
from tests.simulation.society import WorldOutcome, simulate_society

SETS_CHANCE = 1 / 3


def simulate_several(seed: int, machines: int, *, has_arbiter: bool = False) -> WorldOutcome:
    """Play the world of a seed. The same seed gives the same world."""
    if is_replica_set(seed):
        return simulate_set(seed, machines)
    return simulate_society(seed, machines, has_arbiter=has_arbiter)


def is_replica_set(seed: int) -> bool:
    """Whether the machines of this world are one replica set."""
    return random.Random(f"replica set or not {seed}").random() < SETS_CHANCE
