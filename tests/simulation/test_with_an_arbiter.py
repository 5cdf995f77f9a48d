"""A few seeds of the simulation where the broker is a replica set of one, with an arbiter in trouble."""

from __future__ import annotations

import pytest

from tests.seeds import seeds_for
from tests.simulation.parts import wrong_with
from tests.simulation.run import simulate

SEEDS = seeds_for("with an arbiter", 10)


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_a_seed_is_good(number: int) -> None:
    wrong = wrong_with(simulate(SEEDS[number], has_arbiter=True))
    assert not wrong, "\n".join(wrong)


def test_a_seed_gives_the_same_history_again() -> None:
    first, again = (simulate(SEEDS[0], has_arbiter=True).digest for _ in range(2))
    assert first == again, SEEDS[0]
