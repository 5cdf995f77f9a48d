"""Worlds of one replica set, from one seed: each follower is as the leader, and can go on without it."""

from __future__ import annotations

import asyncio
import gc
import random

from tests.checker.check import Checked, Verdict
from tests.simulation.calamities import Calamities
from tests.simulation.complaints import Complaints, failures_on, listening
from tests.simulation.course import STORM_SECONDS
from tests.simulation.coverage import Coverage
from tests.simulation.here import on
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine
from tests.simulation.outcome import Outcome
from tests.simulation.replica_sets.comparison import unequal
from tests.simulation.replica_sets.courses import End, FollowerCourse, LeaderCourse
from tests.simulation.replica_sets.replica_set import LEADER, ReplicaSet
from tests.simulation.society import WorldOutcome, seeds_of
from tests.simulation.verification import Remains, findings_in, remains_of
from tests.simulation.world import in_process_of_a_world

PATIENCE_SECONDS = 120
CALMS_SECONDS = (3.0, 10.0, 30.0)  # each calamity stops the whole set for a while
EQUAL, RUINED = "replica set: a follower was as its leader", "replica set: the leader's disk was destroyed"


class SetWorld:
    """One world. `run` makes its history."""

    def __init__(self, seed: int, machines: int, storm_seconds: float) -> None:
        self.loop = VirtualLoop()
        self.coverage = Coverage()
        self.coverage.announce(EQUAL, RUINED)
        self.failures: list[str] = []
        self._storm_seconds = storm_seconds
        self._chosen = random.Random(f"replica set {seed}")
        self._set = ReplicaSet(self.loop, machines, self._own_chance(), self.coverage)
        first, *others = seeds_of(seed, machines)
        self.leader = LeaderCourse(first, self.loop, self._set, storm_seconds)
        self.leader.settled = self._settle
        self.leader.succeeded = self._succeed
        self.followers = [
            FollowerCourse(each, LEADER + number, self.loop, self.leader, self._set)
            for number, each in enumerate(others, 1)
        ]
        self._calamities = Calamities(
            [self.leader, *self.followers],
            self._set.switch,
            self._own_chance(),
            self.coverage,
            self._chosen.choice(CALMS_SECONDS),
        )

    def _own_chance(self) -> random.Random:
        return random.Random(self._chosen.getrandbits(64))

    async def run(self) -> None:
        """All of it."""
        await asyncio.gather(self._lead(), self._suffer(), *(each.run() for each in self.followers))

    async def _lead(self) -> None:
        await self.leader.run()
        for each in self.followers:
            each.end()

    async def _suffer(self) -> None:
        calamities = asyncio.create_task(self._calamities.run())
        await asyncio.sleep(self._storm_seconds)
        self._calamities.stop()
        try:
            await calamities
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def outcomes(self, complaints: Complaints) -> list[Outcome]:
        """What came of each machine. Only the first one has clients."""
        first = self.leader.outcome(complaints)._replace(has_arbiter=False)
        self.failures += self._set.arbiter.violations
        self.coverage.add(first.coverage)
        outcomes = [first]
        for each in self.followers:
            self.coverage.add(each.coverage, "follower: ")
            failures = [*each.failures, *each.machine.differences, *complaints.about(each.machine)]
            failures += failures_on(each.machine, self.loop.failures)
            checked = Checked(Verdict.VALID, [])
            outcomes.append(Outcome(each.seed, checked, failures, [], each.coverage, self.loop.now))
        return outcomes

    @property
    def remains(self) -> list[Remains]:
        """What all followers have left, when their leader was gone; and what the one that led then has."""
        left = [each.remains for each in self.followers if each.remains is not None]
        return [*left, remains_of(self.leader.machine)]

    # -- the end ---------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """All followers become as the leader is."""
        for _ in range(PATIENCE_SECONDS):
            found = [line for each in self.followers for line in self._differences(each)]
            if not found:
                self.coverage.counts[EQUAL] += len(self.followers)
                return
            await asyncio.sleep(1)
        raise AssertionError("; ".join(found))

    async def _succeed(self) -> Machine:
        """The leader's disk is destroyed: one follower, chosen by chance, leads alone from now on."""
        self.coverage.hit(RUINED)
        for each in self.followers:
            each.end(self._chosen.choice(list(End)))
            await each.has_ended.wait()
        heir = self._chosen.choice(self.followers).machine
        heir.leaves_set = True
        with on(heir):
            await heir.start()
        if heir.failures:
            raise heir.failures[0]
        return heir

    def _differences(self, follower: FollowerCourse) -> list[str]:
        if not follower.machine.is_up:
            return [f"broker {follower.member + 1} does not run"]
        return unequal(self.leader.machine, follower.machine)


def simulate_set(seed: int, machines: int, *, storm_seconds: float = STORM_SECONDS) -> WorldOutcome:
    """Play the world of a seed. The same seed gives the same world."""
    world, complaints = SetWorld(seed, machines, storm_seconds), Complaints()
    members = [world.leader.machine, *(each.machine for each in world.followers)]
    try:
        with in_process_of_a_world(), listening(complaints):
            world.loop.run(world.run())
            outcomes = world.outcomes(complaints)
            for machine in members:
                machine.bury()
            gc.collect()
    finally:
        world.loop.close()
    outcome = WorldOutcome(seed, outcomes, world.failures, world.coverage)
    if outcome.is_good:  # otherwise a process may have ended in the middle of something
        world.failures += [line for each in world.remains for line in findings_in(each)]
    return outcome
