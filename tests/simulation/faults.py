"""What goes wrong on a machine, and when, from one seed."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.simulation.aftermath import Fate
from tests.simulation.arbiter import HELD
from tests.simulation.coverage import Coverage
from tests.simulation.lying_disk import Crash, Operation
from tests.simulation.machine import Machine

DOWN_SECONDS = 2.0
LOOK_SECONDS = 0.05
OPERATIONS_AHEAD_MAX = 120
FULL_SECONDS = 3.0
FULL_AT_STOP_CHANCE = 0.3
FULL_AT_START_CHANCE = 0.3
FULL_BYTES = 20_000
JUMP_MS = 10 * 86_400_000  # longer than anything is kept by default
CRASHED, CRASHED_IN_RECOVERY = "crash: before an operation", "crash: in recovery"
FAILING = ("sync", "sync", "sync", "write", "sync directory", "allocate", "store write")


class Storm(NamedTuple):
    """How often which faults come: one in `calm_seconds` on average, by `weights` (1 if not given)."""

    calm_seconds: float
    weights: dict[str, int]


OF_ALL_KINDS = Storm(6.0, {})
OF_HANDOVERS = Storm(
    1.5, {"a shard is led anew": 8, "wall clock jumps": 0, "error of the disk": 0, "crash at an operation": 0}
)
STORMS = [OF_ALL_KINDS, OF_ALL_KINDS, OF_HANDOVERS]


class Faults:
    """Causes faults until `stop`. Without `may_lose_power`, only processes die (durability `os`)."""

    def __init__(
        self,
        machine: Machine,
        chosen: random.Random,
        coverage: Coverage,
        storm: Storm,
        *,
        may_lose_power: bool,
    ) -> None:
        self._storm = storm
        self._machine = machine
        self._chosen = chosen
        self._coverage = coverage
        self._may_lose_power = may_lose_power
        self._is_stopping = False
        self._is_over = False
        self._is_abandoned = False
        self._starting = asyncio.Lock()
        self._kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop and start": self._stop,
            "a shard is led anew": self._lead_anew,
            "full disk": self._fill_disk,
            "wall clock jumps": self._jump,
            "error of the disk": self._fail_operation,
            "crash at an operation": self._crash_at_an_operation,
        }
        if may_lose_power:
            self._kinds["power loss"] = self._lose_power
        if machine.is_of_a_set:
            del self._kinds["a shard is led anew"]  # in a set, only an election begins an epoch
        if machine.arbiter is not None:
            self._kinds["the arbiter is away"] = self._leave_without_arbiter
            self._kinds["a lease ends early"] = self._end_lease
        coverage.announce(*(f"fault: {name}" for name in self._kinds))
        coverage.announce("fault: stop with a full disk", "fault: start with a full disk")
        coverage.announce(CRASHED, CRASHED_IN_RECOVERY, *(failed(name) for name in FAILING))
        if may_lose_power:
            coverage.announce(*(unsynced(fate) for fate in Fate))

    async def run(self) -> None:
        """Cause faults until stopped."""
        names = list(self._kinds)
        weights = [self._storm.weights.get(name, 1) for name in names]
        while not self._is_stopping:
            await asyncio.sleep(self._chosen.expovariate(1 / self._storm.calm_seconds))
            (name,) = self._chosen.choices(names, weights)
            if self._is_stopping or not self._machine.is_up:
                continue
            self._coverage.hit(f"fault: {name}")
            await self._kinds[name]()

    def stop(self) -> None:
        """Cause no more faults."""
        self._is_stopping = True

    def end(self) -> None:
        """Start no new life any more. One that is about to start may do so."""
        self._is_over = True

    def abandon(self) -> None:
        """The machine is gone for good: end whatever runs there, and whatever is about to start."""
        self._is_over = self._is_abandoned = True
        self._machine.kill()

    async def heal(self) -> None:
        """Make the machine run, with everything it needs."""
        self._machine.weather.clear()
        self._machine.disk.before = lambda operation: None
        self._machine.disk.free_bytes = None
        if self._machine.arbiter is not None:
            self._machine.arbiter.clear()
        await self.come_back()

    # -- dying and coming back -------------------------------------------------------------------------------

    async def come_back(self) -> None:
        """Start the broker until it stays up. Now and then it dies during recovery, too."""
        async with self._starting:
            await self._start()

    async def _start(self) -> None:
        while not (self._machine.is_up or self._is_abandoned):
            is_to_crash = not self._is_stopping and self._chosen.random() < 0.2
            if is_to_crash:
                self._prepare_crash(self._chosen.randint(1, OPERATIONS_AHEAD_MAX))
            await self._machine.start()
            if is_to_crash and not self._machine.is_up:
                self._coverage.hit(CRASHED_IN_RECOVERY)
            if self._machine.failures:
                raise self._machine.failures[0]

    async def _rest(self) -> None:
        await asyncio.sleep(self._chosen.random() * DOWN_SECONDS)
        await self.come_back()

    async def _kill(self) -> None:
        self._machine.kill()
        is_full = self._chosen.random() < FULL_AT_START_CHANCE
        if is_full:
            self._coverage.hit("fault: start with a full disk")
            self._machine.disk.free_bytes = self._chosen.randint(0, FULL_BYTES)
        await self._rest()
        if is_full:
            await asyncio.sleep(self._chosen.random() * FULL_SECONDS)
            self._machine.disk.free_bytes = None

    async def _stop(self) -> None:
        if self._chosen.random() < FULL_AT_STOP_CHANCE:
            self._coverage.hit("fault: stop with a full disk")
            self._machine.disk.free_bytes = 0
        async with self._starting:  # nobody starts before the process is gone
            await self._machine.stop()
        self._machine.disk.free_bytes = None
        await self._rest()

    async def _lead_anew(self) -> None:
        shard = self._chosen.randrange(self._machine.shards)
        await self._machine.lead_anew(shard, self._chosen.random() * DOWN_SECONDS)
        if self._machine.failures:
            raise self._machine.failures[0]
        await self.come_back()

    def _fate(self) -> Fate:
        fate = self._chosen.choice(list(Fate))
        self._coverage.hit(unsynced(fate))
        return fate

    async def _lose_power(self) -> None:
        self._machine.lose_power(self._fate())
        await self._rest()

    def _prepare_crash(self, ahead: int) -> None:
        """Make the machine lose power, or at least the broker die, at the Nth operation from now on."""
        machine, disk = self._machine, self._machine.disk
        last = disk.operations + ahead

        def before(operation: Operation) -> None:
            if operation.number >= last:
                self._coverage.hit(CRASHED)
                if self._may_lose_power:
                    machine.lose_power(self._fate())
                else:
                    machine.kill()
                raise Crash

        disk.before = before

    async def _crash_at_an_operation(self) -> None:
        self._prepare_crash(self._chosen.randint(1, OPERATIONS_AHEAD_MAX))
        for _ in range(200):
            if not self._machine.is_up:
                break
            await asyncio.sleep(0.05)
        self._machine.disk.before = lambda operation: None
        if not self._machine.is_up:
            await self._rest()

    # -- a disk that can't -----------------------------------------------------------------------------------

    async def _fill_disk(self) -> None:
        disk = self._machine.disk
        disk.free_bytes = self._chosen.randint(0, 100_000)
        await asyncio.sleep(self._chosen.random() * FULL_SECONDS)
        disk.free_bytes = None

    async def _fail_operation(self) -> None:
        """Make one operation fail, as with a device error: the broker must end itself (I10)."""
        disk, name = self._machine.disk, self._chosen.choice(FAILING)

        def before(operation: Operation) -> None:
            if operation.name == name:
                disk.before = lambda _: None
                self._coverage.hit(failed(name))
                self._machine.note_loss()
                raise OSError(errno.EIO, "the device has an error")

        disk.before = before
        await asyncio.sleep(self._chosen.random() * DOWN_SECONDS)
        disk.before = lambda operation: None
        if not self._machine.is_up:
            await self._rest()
        if self._may_lose_power and self._chosen.random() < 0.5:
            # This shows what the failed operation left on the disk.
            await self._lose_power()

    # -- the arbiter -----------------------------------------------------------------------------------------

    async def _leave_without_arbiter(self) -> None:
        """The arbiter does not answer: sometimes so long that the lease ends, sometimes only in doubt."""
        arbiter = self._machine.arbiter
        assert arbiter is not None
        arbiter.is_away = True
        until = self._machine.loop.now + self._chosen.random() * 1.5 * arbiter.lease_seconds
        while self._machine.loop.now < until:
            await asyncio.sleep(LOOK_SECONDS)
            self._look_at_gate()
        arbiter.is_away = False

    def _look_at_gate(self) -> None:
        broker = self._machine.broker
        if broker is not None and broker.leadership.gate is not None and broker.leadership.gate.waiting:
            self._coverage.hit(HELD)

    async def begin_anew(self) -> None:
        """Start a new life whenever one has lost its lease, or has ended itself and nobody else starts it."""
        down_seconds = 0.0
        while not self._is_over:
            await asyncio.sleep(LOOK_SECONDS)
            down_seconds = 0.0 if self._machine.is_up else down_seconds + LOOK_SECONDS
            if self._machine.is_deposed or down_seconds > 2 * DOWN_SECONDS:
                await self.come_back()

    async def _end_lease(self) -> None:
        assert self._machine.arbiter is not None
        self._machine.arbiter.end_early()

    async def _jump(self) -> None:
        self._machine.clock.jump_ms += self._chosen.randint(-JUMP_MS, JUMP_MS)


def unsynced(fate: Fate) -> str:
    """The name of what happened to data that was not synced."""
    return f"unsynced data: {fate.value}"


def failed(operation: str) -> str:
    """The name of an operation's failure."""
    return f"error of the disk: {operation}"
