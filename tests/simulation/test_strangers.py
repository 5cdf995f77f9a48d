"""A machine's history is the same to the byte, alone or beside others, whatever happens to those."""

from __future__ import annotations

import asyncio

import pytest

from tests.seeds import seeds_for
from tests.simulation.course import Course
from tests.simulation.loop import VirtualLoop
from tests.simulation.outcome import Outcome
from tests.simulation.traits import has_slow_disk
from tests.simulation.workload import Workload
from tests.simulation.world import run_together, simulate_world

STORM_SECONDS = 8.0
END_SECONDS = 5.0
TRIED_SEEDS = 40


class Unlucky(Course):
    """A course that ends soon, in the midst of the storm, of a failure."""

    async def _live(self, workload: Workload) -> None:
        async with asyncio.timeout(END_SECONDS):
            await super()._live(workload)


def chosen(name: str, *, slow: int, quick: int) -> list[int]:
    """Seeds of machines with slow disks, then of others."""
    seeds = seeds_for(name, TRIED_SEEDS)
    with_slow_disk = [seed for seed in seeds if has_slow_disk(seed)]
    return with_slow_disk[:slow] + [seed for seed in seeds if not has_slow_disk(seed)][:quick]


def seen(outcome: Outcome) -> tuple[int, str, dict[str, int]]:
    """All that must not depend on others."""
    return outcome.seed, outcome.digest, outcome.coverage.counts


@pytest.mark.parametrize("has_arbiter", [False, True])
def test_a_machine_has_the_same_history_beside_others(has_arbiter: bool) -> None:
    seeds = chosen(f"strangers {has_arbiter}", slow=1, quick=1 if has_arbiter else 2)
    alone = [
        seen(simulate_world([seed], has_arbiter=has_arbiter, storm_seconds=STORM_SECONDS)[0])
        for seed in seeds
    ]
    together = simulate_world(seeds[::-1], has_arbiter=has_arbiter, storm_seconds=STORM_SECONDS)
    assert [seen(outcome) for outcome in together] == alone[::-1]


def test_a_machine_has_the_same_history_beside_one_that_fails() -> None:
    seed, unlucky = chosen("beside one that fails", slow=0, quick=2)
    alone = simulate_world([seed], storm_seconds=STORM_SECONDS)[0]
    loop = VirtualLoop()
    failed, beside = run_together(
        loop, [Unlucky(unlucky, loop), Course(seed, loop, storm_seconds=STORM_SECONDS)]
    )
    assert failed.failures[0].startswith("TimeoutError"), failed.failures
    assert (seen(beside), beside.failures) == (seen(alone), alone.failures)
