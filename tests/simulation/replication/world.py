"""Worlds of replicas: one leader and its followers on a network, and all that may befall them.

At any moment, each machine alone has all that was promised: what was kept if its process was killed, what is
durable if it has lost power. At the end, each follower has what the leader has.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from faircopy.journal.checkpoint import JournalCheckpoint
from faircopy.storage.system import mount
from tests.simulation.aftermath import Fate
from tests.simulation.coverage import Coverage
from tests.simulation.loop import VirtualLoop
from tests.simulation.replication.copies import broken_promises, differences
from tests.simulation.replication.follower import FollowerProcess
from tests.simulation.replication.host import Host
from tests.simulation.replication.leader import Disk, LeaderProcess
from tests.simulation.replication.promises import Promises
from tests.simulation.replication.register import Register
from tests.simulation.routed_system import RoutedSystem
from tests.simulation.switch import Switch

STORM_SECONDS = 30.0
CALM_SECONDS = 1.2
DOWN_SECONDS = 2.0
STOPPED_SECONDS = 8.0
APART_SECONDS = 10.0
FULL_SECONDS = 4.0
QUIET_SECONDS = 120.0
FIRST_JOURNALS = 3
LEADER = 0
SERVED, RUINED = "replicas: a leader has passed its barrier", "replicas: the leader's disk was destroyed"

Work = Coroutine[Any, Any, None]


class ReplicaOutcome(NamedTuple):
    """What came of a world. `promised`: bytes that clients were told are durable."""

    seed: int
    failures: list[str]
    coverage: Coverage
    promised: int
    digest: str


class ReplicaWorld:
    """One world. `run` makes its history."""

    def __init__(self, seed: int, machines: int, storm_seconds: float) -> None:
        self.seed = seed
        self.loop = VirtualLoop()
        self.coverage = Coverage()
        self.failures: list[str] = []
        self.promises = Promises(machines, self._is_present)
        self._storm_seconds = storm_seconds
        self._chosen = random.Random(f"replicas {seed}")
        self._switch = Switch(self.loop, machines, self._own_chance(), self.coverage)
        self._register = Register(machines)
        self._stored = Disk({})
        self._leader: LeaderProcess | None = None
        self._is_stormy = True
        self._under_way: list[asyncio.Task[None]] = []
        self._hosts: list[Host] = []
        self._kinds: dict[str, Callable[[], Work]] = {
            "a process was killed": lambda: self._end([self._host()], self._kill),
            "processes were killed together": lambda: self._end(self._some(), self._kill),
            "a machine lost power": lambda: self._end([self._host()], self._lose_power),
            "machines lost power together": lambda: self._end(self._some(), self._lose_power),
            "a process was stopped": lambda: self._pause(self._host()),
            "a way was cut": lambda: self._cut([self._way()]),
            "a machine was cut off": lambda: self._cut(self._ways_of(self._host())),
            "a way was silent": lambda: self._silence([self._way()]),
            "a machine was alone": lambda: self._silence(self._ways_of(self._host())),
            "a disk was full": lambda: self._fill(self._host()),
        }
        self.coverage.announce(SERVED, *self._kinds)

    def _own_chance(self) -> random.Random:
        return random.Random(self._chosen.getrandbits(64))

    async def run(self) -> None:
        """All of it."""
        self._hosts += [
            Host(number, self.loop, self._switch, self._own_chance(), self.coverage, self.failures)
            for number in range(len(self._register.followers) + 1)
        ]
        for _ in range(FIRST_JOURNALS):
            self.promises.begin(self._chosen.randbytes(20))
        for host in self._hosts:
            self._begin(host)
        storm = asyncio.ensure_future(self._storm())
        await asyncio.sleep(self._storm_seconds)
        self._is_stormy = False
        await storm
        await self._until_quiet()

    def _is_present(self, machine: int, incarnation: int) -> bool:
        host = self._hosts[machine]
        return host.incarnation == incarnation and not host.life.is_over

    def _begin(self, host: Host) -> None:
        host.begin(self._lead if host.number == LEADER else self._follow)

    async def _lead(self, host: Host) -> None:
        self._leader = LeaderProcess(host, self._register, self.promises, self._stored)
        self._leader.on_serving = lambda: self.coverage.hit(SERVED)
        await self._leader.run()

    async def _follow(self, host: Host) -> None:
        await FollowerProcess(host, self._register).run()

    # -- the end ---------------------------------------------------------------------------------------------

    async def _until_quiet(self) -> None:
        """Append no more, and wait until all have the same."""
        deadline = self.loop.now + QUIET_SECONDS
        while (found := self._unequal()) and self.loop.now < deadline:
            await asyncio.sleep(1)
        self.failures += found
        for host in self._hosts:
            self._look_at(host)

    def _unequal(self) -> list[str]:
        leader = self._leader
        if leader is None or not leader.serves:
            missing = leader.followers.missing if leader is not None and hasattr(leader, "followers") else {}
            return [f"the leader does not serve: {missing}"]
        leader.falls_silent = True
        first, *others = self._hosts
        return [line for each in others for line in differences(first, each, self.promises, self._start)]

    def _look_at(self, host: Host) -> None:
        starts = self._start if host.number == LEADER else lambda _journal: 0
        self.failures += broken_promises(host, self.promises, starts)

    def _start(self, journal: bytes) -> int:
        """From where on the leader needs a journal."""
        return self._stored.checkpoints.get(journal, JournalCheckpoint()).position

    # -- the storm -------------------------------------------------------------------------------------------

    async def _storm(self) -> None:
        while self._is_stormy:
            await asyncio.sleep(self._chosen.expovariate(1 / CALM_SECONDS))
            name = self._chosen.choice(list(self._kinds))
            self.coverage.hit(name)
            self._under_way.append(asyncio.ensure_future(self._kinds[name]()))
        await asyncio.gather(*self._under_way)

    def _host(self) -> Host:
        return self._chosen.choice(self._hosts)

    def _some(self) -> list[Host]:
        return self._chosen.sample(self._hosts, self._chosen.randint(2, len(self._hosts)))

    async def _end(self, hosts: Sequence[Host], how: Callable[[Host], None]) -> None:
        running = [host for host in hosts if not host.life.is_over]
        for host in running:
            how(host)
        for host in running:
            await asyncio.sleep(self._chosen.random() * DOWN_SECONDS)
            self._begin(host)

    def _kill(self, host: Host) -> None:
        host.kill()
        self._look_at(host)

    def _lose_power(self, host: Host) -> None:
        host.lose_power(self._chosen.choice(list(Fate)))
        self.promises.lose(host.number)
        self._look_at(host)

    async def _pause(self, host: Host) -> None:
        life = host.life
        if life.is_running:
            life.pause()
            await asyncio.sleep(self._chosen.random() * STOPPED_SECONDS)
            life.resume()

    def _way(self) -> tuple[int, int]:
        return self._chosen.choice(list(self._switch.paths))

    def _ways_of(self, host: Host) -> list[tuple[int, int]]:
        return [way for way in self._switch.paths if host.number in way]

    async def _cut(self, ways: Sequence[tuple[int, int]]) -> None:
        for way in ways:
            self._switch.cut(*way)
        await self._heal(ways)

    async def _silence(self, ways: Sequence[tuple[int, int]]) -> None:
        for way in ways:
            self._switch.fall_silent(*way)
        await self._heal(ways)

    async def _heal(self, ways: Sequence[tuple[int, int]]) -> None:
        await asyncio.sleep(self._chosen.random() * APART_SECONDS)
        for way in ways:
            self._switch.heal(*way)

    async def _fill(self, host: Host) -> None:
        host.disk.free_bytes = 0
        await asyncio.sleep(self._chosen.random() * FULL_SECONDS)
        host.disk.free_bytes = None


def simulate_replicas(seed: int, machines: int = 3, storm_seconds: float = STORM_SECONDS) -> ReplicaOutcome:
    """Run the world of a seed. The same seed gives the same world."""
    world = ReplicaWorld(seed, machines, storm_seconds)
    gc.disable()  # it would end what is left of dead processes, at moments that depend on this one's memory
    try:
        with mount(RoutedSystem()):
            world.loop.run(world.run())
    finally:
        world.loop.close()
        gc.enable()
    world.failures += [str(failure) for failure in world.loop.failures]
    promised = sum(world.promises.durable.values())
    return ReplicaOutcome(seed, world.failures, world.coverage, promised, world.promises.digest)
