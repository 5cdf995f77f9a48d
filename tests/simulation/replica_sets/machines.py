"""The machines of a replica set: that of the leader, and those of followers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from faircopy.arbiter.address import ArbiterOptions
from faircopy.arbiter.backend import Backend
from faircopy.arbiter.session import LeaseLost
from faircopy.broker.environment import Environment
from faircopy.broker.follower import Follower
from faircopy.broker.leadership import MemberOfASet, Start, leadership_of
from faircopy.settings.table import Settings
from faircopy.storage.failures import Shortage
from faircopy.wire.address import Address
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import Crash
from tests.simulation.machine import Machine, SimulatedEnvironment
from tests.simulation.replica_sets.replica_set import LEADER, ReplicaSet

PAUSE_SECONDS = 1.0
"""How long whatever starts a process waits before it tries again."""


class LeaderMachine(Machine):
    """The machine of the first member."""

    def __init__(
        self,
        loop: VirtualLoop,
        settings: Settings,
        chosen: random.Random,
        coverage: Coverage,
        replica_set: ReplicaSet,
        *,
        has_slow_disk: bool,
    ) -> None:
        super().__init__(loop, settings, chosen, coverage, replica_set.arbiter, has_slow_disk=has_slow_disk)
        self.replica_set = replica_set
        self.begun = lambda life: replica_set.begin(LEADER, life)

    def _environment(self) -> Environment:
        return MemberEnvironment(self, random.Random(self._chosen.getrandbits(64)), self.replica_set, LEADER)

    def _said(self) -> Start:
        return self.replica_set.start_of_leader

    def _settings_of_start(self) -> Settings:
        return self.replica_set.settings_of(LEADER, super()._settings_of_start())


class FollowerMachine(Machine):
    """The machine of another member. Once it `leaves_set`, its broker has no arbiter and leads alone."""

    def __init__(
        self,
        loop: VirtualLoop,
        settings: Settings,
        chosen: random.Random,
        coverage: Coverage,
        replica_set: ReplicaSet,
        member: int,
        *,
        has_slow_disk: bool,
    ) -> None:
        super().__init__(loop, settings, chosen, coverage, has_slow_disk=has_slow_disk)
        self.replica_set = replica_set
        self.member = member
        self.begun = lambda life: replica_set.begin(member, life)
        self.leaves_set = False
        self.follower: Follower | None = None

    @property
    def is_of_a_set(self) -> bool:
        return not self.leaves_set

    @property
    def is_up(self) -> bool:
        return self.broker is not None or self.follower is not None

    def _environment(self) -> Environment:
        chosen = random.Random(self._chosen.getrandbits(64))
        return MemberEnvironment(self, chosen, self.replica_set, self.member)

    def _said(self) -> Start:
        return Start(leaves_set=self.leaves_set)

    def _settings_of_start(self) -> Settings:
        if self.leaves_set:
            return super()._settings_of_start()
        return self.replica_set.settings_of(self.member, self._settings)

    async def start(self) -> None:
        """Start the process. If it can't run yet, that takes its time."""
        await super().start()
        if not self.is_up:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _run(self, life: Life) -> None:
        await (super()._run(life) if self.leaves_set else self._follow(life))

    async def _follow(self, life: Life) -> None:
        settings, environment = self._settings_of_start(), self._environment()
        leadership = leadership_of(settings, environment, self._said())
        assert isinstance(leadership, MemberOfASet)
        leadership.lost.add_done_callback(lambda _: self._deposed(life))
        try:
            follower = await self._started(settings, environment, leadership)
        except (Crash, LeaseLost):
            return
        except Shortage:
            follower = None  # it can't start yet, and says so
        except Exception as error:
            self.failures.append(error)
            follower = None
        if follower is None:
            life.end()
        else:
            follower.failed.add_done_callback(lambda _: self._died(life))
            self.follower = follower

    async def _started(
        self, settings: Settings, environment: Environment, leadership: MemberOfASet
    ) -> Follower | None:
        """A follower that has started; None if nobody has made the set yet."""
        if not await leadership.follows():
            return None
        follower = Follower(settings, environment, leadership)
        self._graveyard.append(follower)
        await follower.start()
        return follower

    def _end_life(self, *, silently: bool = False) -> None:
        super()._end_life(silently=silently)
        self.follower = None

    async def stop(self) -> None:
        """Stop whatever runs in order."""
        if self.follower is None:
            await super().stop()
            return
        follower, self.follower = self.follower, None
        await self._finish(follower.stop())
        self.kill()


class MemberEnvironment(SimulatedEnvironment):
    """The environment of a member's broker."""

    def __init__(self, machine: Machine, chosen: random.Random, replica_set: ReplicaSet, member: int) -> None:
        super().__init__(machine, chosen)
        self._replica_set = replica_set
        self._member = member

    async def connect(self, address: Address, protocol: asyncio.Protocol) -> asyncio.BaseTransport:
        return await self._replica_set.connect(self._member, address, protocol)

    async def listen(
        self, address: Address, accept: Callable[[], asyncio.Protocol]
    ) -> tuple[Address, Callable[[], None]]:
        return self._replica_set.listen(self._member, address, accept)

    def arbiter(
        self, options: ArbiterOptions, set_name: str, name: str, loop: asyncio.AbstractEventLoop
    ) -> Backend:
        arbiter = self._replica_set.arbiter
        return arbiter.backend() if self._member == LEADER else arbiter.backend_of_follower()
