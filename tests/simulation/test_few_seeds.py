"""A few seeds of the simulation, of which each passes; test_simulation.py has many more."""

from __future__ import annotations

import pytest

from tests.seeds import seeds_for
from tests.simulation.parts import wrong_with
from tests.simulation.run import simulate

SEEDS = seeds_for("a few", 16)


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_a_seed_is_good(number: int) -> None:
    wrong = wrong_with(simulate(SEEDS[number]))
    assert not wrong, "\n".join(wrong)


def test_a_seed_gives_the_same_history_again() -> None:
    """Whatever the first run has left in this process; test_same_history.py has other processes."""
    first, again = (simulate(SEEDS[0]).digest for _ in range(2))
    assert first == again, SEEDS[0]
