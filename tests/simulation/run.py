"""One simulation: a machine, its clients and its faults, all from one seed; then checker and `verify`."""

from __future__ import annotations

from tests.simulation.outcome import Outcome
from tests.simulation.world import simulate_world


def simulate(seed: int, *, has_arbiter: bool = False) -> Outcome:
    """Run one seed. The same seed gives the same run. With an arbiter, the broker is a replica set of one."""
    (outcome,) = simulate_world([seed], has_arbiter=has_arbiter)
    return outcome
