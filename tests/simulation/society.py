"""Worlds of several machines whose brokers talk to each other, from one seed.

In half of them, that is all they have in common: each machine must have the history that it has alone. In the
others, calamities strike several at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tests.seeds import follow
from tests.simulation.calamities import Calamities
from tests.simulation.chatter import Talk
from tests.simulation.course import STORM_SECONDS, Course
from tests.simulation.coverage import Coverage
from tests.simulation.loop import VirtualLoop
from tests.simulation.outcome import Outcome
from tests.simulation.parts import again_with, found_in
from tests.simulation.switch import Switch
from tests.simulation.world import run_together, simulate_world

RECOVERY_SECONDS = 5.0
ALONE = "world: a machine had the same history alone"


class WorldOutcome(NamedTuple):
    """What came of a world: of each machine, and of all together. `coverage` is that of all. The first
    machine has the world's seed.
    """

    seed: int
    machines: list[Outcome]
    failures: list[str]
    coverage: Coverage

    @property
    def is_good(self) -> bool:
        return not self.failures and all(outcome.is_good for outcome in self.machines)

    @property
    def virtual_seconds(self) -> float:
        """How long the world lasted."""
        return max(outcome.virtual_seconds for outcome in self.machines)

    @property
    def wrong(self) -> list[str]:
        """What is wrong with the world, and how to repeat it; nothing if it is good."""
        if self.is_good:
            return []
        found = [f"  {failure}" for failure in self.failures]
        for number, outcome in enumerate(self.machines, 1):
            found += [f"  machine {number}, {line}" for line in found_in(outcome)]
        again = again_with(self.seed, has_arbiter=self.machines[0].has_arbiter)
        return [f"world of seed {self.seed}", *found, f"{again} MACHINES={len(self.machines)}"]


def simulate_society(
    seed: int, machines: int, *, has_arbiter: bool = False, storm_seconds: float = STORM_SECONDS
) -> WorldOutcome:
    """Run the world of a seed. The same seed gives the same world."""
    loop, coverage = VirtualLoop(), Coverage()
    coverage.announce(ALONE)
    courses = [
        Course(each, loop, has_arbiter=has_arbiter, storm_seconds=storm_seconds)
        for each in seeds_of(seed, machines)
    ]
    together = Together(loop, courses, random.Random(f"world {seed}"), coverage)
    calamities = 0.0 if are_strangers(seed) else storm_seconds
    outcomes = run_together(loop, courses, lambda: together.run(calamities))
    if are_strangers(seed):
        for outcome in outcomes:
            coverage.hit(ALONE)
            (alone,) = simulate_world([outcome.seed], has_arbiter=has_arbiter, storm_seconds=storm_seconds)
            if alone.digest != outcome.digest:
                together.failures.append(f"the machine of seed {outcome.seed} has another history alone")
    for outcome in outcomes:
        coverage.add(outcome.coverage)
    return WorldOutcome(seed, outcomes, together.failures, coverage)


def seeds_of(seed: int, machines: int) -> list[int]:
    """The seeds of a world's machines."""
    return [seed, *(follow(f"machine {number} of {seed}") for number in range(1, machines))]


def are_strangers(seed: int) -> bool:
    """Whether the machines of this world have no faults in common."""
    return random.Random(f"strangers {seed}").random() < 0.5


class Together:
    """What the machines of a world have in common: a network, talk, and calamities."""

    def __init__(
        self, loop: VirtualLoop, courses: Sequence[Course], chosen: random.Random, coverage: Coverage
    ) -> None:
        self._courses = courses
        switch = Switch(loop, len(courses), random.Random(chosen.getrandbits(64)), coverage)
        self._talk = Talk(loop, switch, random.Random(chosen.getrandbits(64)), coverage)
        self._calamities = Calamities(courses, switch, random.Random(chosen.getrandbits(64)), coverage)
        for number, course in enumerate(courses):
            course.machine.begun = partial(self._talk.begin, number)
        self.failures = self._talk.wrong

    async def run(self, calamities_seconds: float) -> None:
        """Go through the storms of all machines, and listen afterwards whether all lines work."""
        try:
            await self._suffer(calamities_seconds)
            await asyncio.gather(*(course.is_calm.wait() for course in self._courses))
            await asyncio.sleep(RECOVERY_SECONDS)
            await self._talk.check()
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    async def _suffer(self, seconds: float) -> None:
        calamities = asyncio.create_task(self._calamities.run())
        await asyncio.sleep(seconds)
        self._calamities.stop()
        await calamities
