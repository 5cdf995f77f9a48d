"""Worlds of several machines: nothing goes wrong, and a seed gives the same world again."""

from __future__ import annotations

from tests.checker.check import Checked, Verdict
from tests.seeds import seeds_for
from tests.simulation.coverage import Coverage
from tests.simulation.outcome import Outcome
from tests.simulation.society import ALONE, WorldOutcome, are_strangers, simulate_society

STORM_SECONDS = 12.0
TRIED_SEEDS = 40


def a_seed(name: str, *, strangers: bool) -> int:
    return next(seed for seed in seeds_for(name, TRIED_SEEDS) if are_strangers(seed) == strangers)


def simulate(seed: int, machines: int) -> WorldOutcome:
    world = simulate_society(seed, machines, storm_seconds=STORM_SECONDS)
    assert world.is_good, "\n".join(world.wrong)
    return world


def test_a_world_of_strangers_is_good() -> None:
    world = simulate(a_seed("strangers who talk", strangers=True), machines=2)
    assert world.coverage.counts[ALONE] == 2


def test_a_world_with_calamities_is_good_and_the_same_again() -> None:
    seed = a_seed("calamities", strangers=False)
    first, again = (simulate(seed, machines=2) for _ in range(2))
    assert seen(first) == seen(again)


def seen(world: WorldOutcome) -> tuple[list[str], dict[str, int]]:
    """All that can be compared of a world."""
    return [outcome.digest for outcome in world.machines], world.coverage.counts


def test_what_is_wrong_says_where_and_how_to_repeat_it() -> None:
    good = Outcome(17, Checked(Verdict.VALID, []), [], [], Coverage(), 1.0)
    machines = [good, good._replace(seed=18, failures=["it broke"])]
    assert WorldOutcome(17, machines, ["a line broke"], Coverage()).wrong == [
        "world of seed 17",
        "  a line broke",
        "  machine 2, seed 18: valid",
        "  machine 2,   it broke",
        "  again: make simulate SEED=17 MACHINES=2",
    ]
    assert WorldOutcome(17, [good, good], [], Coverage()).wrong == []
