"""The courses of a set's machines: the leader has clients, and a storm as any broker; so do followers."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import random
from collections.abc import Awaitable, Callable
from enum import Enum

from faircopy.settings.table import Settings
from tests.simulation.aftermath import Fate
from tests.simulation.arbiter import SimulatedArbiter
from tests.simulation.course import Course
from tests.simulation.coverage import Coverage
from tests.simulation.faults import OF_ALL_KINDS, Faults, failed
from tests.simulation.here import on
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine
from tests.simulation.replica_sets.machines import FollowerMachine, LeaderMachine
from tests.simulation.replica_sets.replica_set import LEADER, ReplicaSet
from tests.simulation.traits import has_slow_disk
from tests.simulation.verification import Remains, remains_of
from tests.simulation.workload import Workload

SHARDS_MAX = 3
SHARDED = "replica set: its journals were in several shards"
RUINED_EARLY_CHANCE = 0.5
RUINED_SECONDS = 5.0
ISOLATED_SECONDS = 2.0
"""How long the leader goes on, without what it needs to acknowledge anything, before its end."""


class LeaderCourse(Course):
    """The course of the first member. If it is `ruined_early`, its disk is destroyed while clients work,
    otherwise in the end. `settled` is called when all clients have finished, and `succeeded` to have another
    machine go on without this one.
    """

    def __init__(self, seed: int, loop: VirtualLoop, replica_set: ReplicaSet, storm_seconds: float) -> None:
        self._replica_set = replica_set
        self.is_ruined_early = random.Random(f"ruin {seed}").random() < RUINED_EARLY_CHANCE
        self.settled: Callable[[], Awaitable[None]]
        self.succeeded: Callable[[], Awaitable[Machine]]
        super().__init__(seed, loop, has_arbiter=True, storm_seconds=storm_seconds)

    def _settings(self) -> Settings:
        shards = random.Random(f"shards {self._seed}").randint(1, SHARDS_MAX)
        self._coverage.announce(SHARDED)
        self._coverage.counts[SHARDED] += shards > 1
        return dataclasses.replace(
            super()._settings(), durability="fsync", plain_enabled=False, shards=shards
        )

    def _new_machine(self) -> Machine:
        slow = has_slow_disk(self._seed)
        return LeaderMachine(
            self._loop, self.settings, self._chosen, self._coverage, self._replica_set, has_slow_disk=slow
        )

    def _arbiter(self) -> SimulatedArbiter:
        return self._replica_set.arbiter

    async def _calm_down(self, faults: Faults, workload: Workload) -> None:
        await super()._calm_down(faults, workload)
        if self.is_ruined_early:
            await asyncio.sleep(self._chosen.random() * RUINED_SECONDS)
            self._replica_set.isolate(LEADER)
            await asyncio.sleep(self._chosen.random() * ISOLATED_SECONDS)
            faults.abandon()
            self._replica_set.join(LEADER)
            await self._go_on_elsewhere(workload)

    async def _settle(self, workload: Workload) -> None:
        if not self.is_ruined_early:
            await self.settled()

    async def _outlive(self, workload: Workload) -> None:
        if not self.is_ruined_early:
            await self._go_on_elsewhere(workload)
            await workload.read_all()
            with on(self.machine):
                await self.machine.stop()

    async def _go_on_elsewhere(self, workload: Workload) -> None:
        self.machine = await self.succeeded()
        workload.move_to(self.machine)


class End(Enum):
    """How the process of a follower ends."""

    IN_ORDER = "stopped in order"
    KILLED = "killed"
    WITHOUT_POWER = "its machine lost power"


class FollowerCourse:
    """The course of another member, until `end`. `remains` are what it has left then."""

    may_lose_power = True

    def __init__(
        self, seed: int, member: int, loop: VirtualLoop, leader: LeaderCourse, replica_set: ReplicaSet
    ) -> None:
        chosen = random.Random(seed)
        self.seed = seed
        self.member = member
        self.coverage = Coverage()
        self.machine = FollowerMachine(
            loop,
            leader.settings,
            chosen,
            self.coverage,
            replica_set,
            member,
            has_slow_disk=has_slow_disk(seed),
        )
        self._leader = leader
        self._faults = Faults(self.machine, chosen, self.coverage, OF_ALL_KINDS, may_lose_power=True)
        del self.coverage.counts[failed("store write")]  # a follower seldom writes there: it need not be met
        self._chosen = chosen
        self._end = End.IN_ORDER
        self._is_over = asyncio.Event()
        self.has_ended = asyncio.Event()
        self.remains: Remains | None = None
        self.failures: list[str] = []

    @property
    def has_storm(self) -> bool:
        """Whether others may cause faults, too: as long as they may on the leader's machine."""
        return self._leader.has_storm

    async def come_back(self) -> None:
        """Start the process, unless it runs."""
        with on(self.machine):
            await self._faults.come_back()

    def end(self, how: End = End.IN_ORDER) -> None:
        """End it, once it has gone through its storm."""
        self._end = how
        self._is_over.set()

    async def run(self) -> None:
        """Run all of it."""
        with on(self.machine):
            try:
                await self._live()
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
        self.has_ended.set()

    async def _live(self) -> None:
        faults = self._faults
        restarts = asyncio.create_task(faults.begin_anew())
        await faults.come_back()
        await self._go_through_storm()
        await self._is_over.wait()
        faults.end()
        await restarts
        self.machine.losses.clear()  # the leader has sent again what was lost before
        match self._end:
            case End.IN_ORDER:
                await self.machine.stop()
            case End.KILLED:
                self.machine.kill()
            case End.WITHOUT_POWER:
                self.machine.lose_power(self._chosen.choice(list(Fate)))
        self.remains = copy.deepcopy(remains_of(self.machine))

    async def _go_through_storm(self) -> None:
        while not self._leader.has_storm and not self._leader.is_calm.is_set():
            await asyncio.sleep(1)
        storm = asyncio.create_task(self._faults.run())
        while self._leader.has_storm:
            await asyncio.sleep(1)
        self._faults.stop()
        await storm
        await self._faults.heal()
