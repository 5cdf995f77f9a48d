"""One machine: its disk, its clocks, and the broker that runs on it, dies, and comes back."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from faircopy.arbiter.address import ArbiterOptions
from faircopy.arbiter.backend import Backend
from faircopy.arbiter.session import LeaseLost
from faircopy.broker.broker import Broker
from faircopy.broker.environment import Environment
from faircopy.broker.leadership import Start, leadership_of
from faircopy.publish.client import Publisher
from faircopy.settings.table import Settings
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import Shortage, WriteFailure
from faircopy.storage.state_store import StateStore
from tests.simulation.aftermath import Fate
from tests.simulation.arbiter import LOST, SimulatedArbiter
from tests.simulation.coverage import Coverage
from tests.simulation.here import on
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import Crash, LyingDisk
from tests.simulation.network import Disconnected, Link, Weather
from tests.simulation.publisher import SimulatedPublisher
from tests.simulation.refold import differences
from tests.simulation.store import Contents, SimulatedStore
from tests.simulation.threads import SimulatedThreads

DIRECTORY = Path("/data")
DISK_THREADS = 8
PROCESS_ID = 1  # as in a container
PATIENCE_SECONDS = 120.0
STARVED_SECONDS = 0.25
ENDED_ITSELF = "broker: ended itself after an error of the disk"
EPOCH_MS = 1_790_000_000_000
UPTIME_SECONDS = 5_000
UPTIME_ELSEWHERE_SECONDS = 30 * 86_400
STEADY_NOTE_INTERVAL_MS = 500
EARLY_SECONDS_A_BOOT = 2 * STEADY_NOTE_INTERVAL_MS / 1000 + 0.1


class VirtualClock:
    """The clocks of a machine; `jump_ms` is how far somebody has set the wall clock off."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._booted: float = -UPTIME_SECONDS
        self.jump_ms = 0

    def move(self) -> None:
        """The disk goes to another machine, which has been up for long."""
        self._booted = self._loop.now - UPTIME_ELSEWHERE_SECONDS

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._loop.now * 1000) + self.jump_ms

    def uptime_ms(self) -> int:
        return int((self._loop.now - self._booted) * 1000)

    def monotonic_ms(self) -> float:
        return self._loop.now * 1000


class Machine:
    """`failures` are errors of brokers that could not start; no simulated fault may cause them. `differences`
    are the places where a broker's state was not what its journals say. `losses` are the times at which what
    was acked in open transactions may have been lost. `begun` is called with each new process, before its
    broker starts.

    A context manager: what begins in its block runs on the machine, with its disk if the world has routed
    calls to disks (`routed_system.py`). With `has_slow_disk`, the disk is slower than the network.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        settings: Settings,
        chosen: random.Random,
        coverage: Coverage,
        arbiter: SimulatedArbiter | None = None,
        *,
        has_slow_disk: bool = False,
    ) -> None:
        self.loop = loop
        self.clock = VirtualClock(loop)
        self.disk = LyingDisk(self._now_ns)
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory(DIRECTORY.parent)
        self.contents = Contents()
        self.weather = Weather(random.Random(chosen.getrandbits(64)))
        self.coverage = coverage
        coverage.announce(ENDED_ITSELF)
        self.arbiter = arbiter
        self.has_slow_disk = has_slow_disk
        self.broker: Broker | None = None
        self.failures: list[BaseException] = []
        self.differences: list[str] = []
        self.directory = DIRECTORY
        self.has_tables = settings.plain_enabled
        self.forgets_ids_after = settings.transactional_id_expiration_ms / 1000
        if self.has_tables:
            coverage.announce("plain table: published", "plain table: merged")
        self._settings = dataclasses.replace(settings, data_dir=str(DIRECTORY))
        self._chosen = chosen
        self.shards = settings.shards
        self.boots = 0
        self.is_deposed = False
        self.losses: list[float] = []
        self.life = Life("broker")
        self.begun: Callable[[Life], None] = lambda life: None
        self._graveyard: list[object] = []
        self._entered = ExitStack()

    def __enter__(self) -> Machine:
        self._entered.enter_context(on(self))
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever is left of the machine."""
        self._end_life()
        self._entered.close()

    def _now_ns(self) -> int:
        return self.clock.wall_ms() * 1_000_000

    def bury(self) -> None:
        """Release dead brokers. Their coroutines end with them, and still need the loop for that."""
        self._graveyard.clear()

    # -- the broker's environment ----------------------------------------------------------------------------

    def _environment(self) -> Environment:
        chosen = random.Random(self._chosen.getrandbits(64))
        return SimulatedEnvironment(self, chosen)

    @property
    def is_up(self) -> bool:
        """Whether a broker accepts connections."""
        return self.broker is not None

    async def start(self) -> None:
        """Start the broker. If it dies on the way, it is not up afterwards."""
        self.life = life = Life("broker")
        self.begun(life)
        self.is_deposed = False
        await self._finish(self._run(life))

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Make the broker do this work, unless it dies meanwhile. Then the rest is never done."""
        life = self.life
        task = self.loop.create_task(work, context=life.context)
        self._graveyard.append(task)
        done, _ = await asyncio.wait(
            [task, life.over(self.loop)], timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            what = getattr(work, "__qualname__", work)
            raise TimeoutError(f"{what} takes more than {PATIENCE_SECONDS:.0f} s")

    async def lead_anew(self, shard: int, pause_seconds: float) -> None:
        """Make the broker stop leading a shard, and lead it again, unless it dies meanwhile."""
        broker = self.broker
        if broker is not None:
            await self._finish(self._lead_anew(broker, shard, pause_seconds))

    async def _lead_anew(self, broker: Broker, shard: int, pause_seconds: float) -> None:
        try:
            await broker.shards.close(shard)
            await asyncio.sleep(pause_seconds)
            while not broker.shards.are_all_led:
                await self._lead(broker, shard)
        except WriteFailure:
            pass  # the disk has failed, and the broker ends itself
        except Exception as error:
            self.failures.append(error)

    async def _lead(self, broker: Broker, shard: int) -> None:
        try:
            await broker.shards.lead(shard)
        except Shortage:
            await asyncio.sleep(STARVED_SECONDS)  # for space

    async def _run(self, life: Life) -> None:
        settings, environment = self._settings_of_start(), self._environment()
        leadership = leadership_of(settings, environment, self._said())
        broker = Broker(settings, environment, leadership=leadership)
        self._graveyard.append(broker)
        broker.leadership.lost.add_done_callback(lambda _: self._deposed(life))
        try:
            await broker.open()
        except (Crash, LeaseLost):
            return
        except Exception as error:
            self.failures.append(error)
            life.end()
            return
        broker.start_background()
        broker.failed.add_done_callback(lambda _: self._died(life))
        self.broker = broker

    @property
    def is_of_a_set(self) -> bool:
        """Whether an arbiter says who leads."""
        return self.arbiter is not None

    def _said(self) -> Start:
        """What is said of a replica set."""
        return Start(makes_set=self.arbiter is not None)

    def _settings_of_start(self) -> Settings:
        """In a replica set, another broker may start on the same directory."""
        if self.arbiter is None:
            return self._settings
        return dataclasses.replace(
            self._settings,
            arbiter="etcd://10.0.0.9:2379",
            replica_set="orders",
            arbiter_lease_ms=round(self.arbiter.lease_seconds * 1000),
            node_id=self.arbiter.broker_id(),
        )

    def _deposed(self, life: Life) -> None:
        """The process replaces itself once its lease is lost."""
        if not life.is_over:
            self.coverage.hit(LOST)
            self.is_deposed = True
            self.kill()

    def _died(self, life: Life) -> None:
        """I10: the process ends by itself after an error of the disk."""
        if not life.is_over:
            self.coverage.hit(ENDED_ITSELF)
            self.kill()

    def found_bug(self) -> None:
        """The process ends by itself: no seed may lead to that. It is in the midst of something here, so the
        end comes in the next tick.
        """
        life = self.life
        self.failures.append(AssertionError("the broker has ended, since an entry did not fold"))
        self.loop.call_soon(lambda: None if life.is_over else self.kill())

    def connect(self, client: Life) -> Link:
        """A connection to the broker. Raises Disconnected."""
        if self.broker is None:
            raise Disconnected("nobody listens")
        note_answer = self.arbiter.note_answer if self.arbiter is not None else lambda: None
        return Link(self.loop, self.weather, client, self.life, self.broker.server, note_answer)

    # -- faults ----------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process. What it has written stays."""
        self._compare()
        self._end_life()
        self.disk = self.disk.kill()

    def lose_power(self, fate: Fate) -> None:
        """Stop the machine, and go on with its disk in another. What was not fsynced has this fate."""
        self._compare()
        self._end_life(silently=True)
        self.disk = self.disk.crash(fate, self._chosen)
        self.boots += 1
        self.note_loss()
        self.clock.move()

    def note_loss(self) -> None:
        """What was written, and not synced, may be lost. Nothing of that was acked if acks are durable."""
        if not self._settings.acks_drafts_durably(self._settings.transactional_ack):
            self.losses.append(self.loop.now)

    def _compare(self) -> None:
        """Note where the broker's state differs from what its journals say."""
        if self.broker is not None and not self.life.is_over:
            self.differences += differences(self.broker)

    def _end_life(self, *, silently: bool = False) -> None:
        self.life.end(silently=silently)
        self.broker = None

    async def stop(self) -> None:
        """Stop the broker in order."""
        if self.broker is not None:
            broker, self.broker = self.broker, None
            life = self.life
            await self._finish(broker.stop())
            assert self.life is life, "another life has begun beside one that was about to end"
            if not life.is_over:
                self.differences += differences(broker)
                self.kill()


class SimulatedEnvironment(Environment):
    """The environment of a broker on a `Machine`."""

    def __init__(self, machine: Machine, chosen: random.Random) -> None:
        super().__init__(machine.clock, chosen)
        self._machine = machine
        self._disks = random.Random(chosen.getrandbits(64))

    def boot_id(self) -> str:
        return f"boot-{self._machine.boots}"

    def process_id(self) -> int:
        # Not this process's own: it is written to files, so its length changes how full the disk is.
        return PROCESS_ID

    def end_process(self, exit_code: int) -> None:
        self._machine.found_bug()

    def disk(self, loop: asyncio.AbstractEventLoop) -> DiskPool:
        return SimulatedThreads(loop, DISK_THREADS, self._disks, is_slow=self._machine.has_slow_disk)

    def arbiter(
        self, options: ArbiterOptions, set_name: str, name: str, loop: asyncio.AbstractEventLoop
    ) -> Backend:
        assert self._machine.arbiter is not None
        return self._machine.arbiter.backend()

    def publisher(self, now_ms: Callable[[], int], idle_seconds: float) -> Publisher:
        machine = self._machine
        chosen = random.Random(self._disks.getrandbits(64))
        return SimulatedPublisher(machine.disk, now_ms, chosen, machine.coverage)

    def store(self, path: Path, loop: asyncio.AbstractEventLoop) -> StateStore:
        machine = self._machine
        disk = machine.disk
        return SimulatedStore(
            machine.contents,
            loop,
            self._disks,
            lambda: disk.operation("store write", path),
            is_slow=machine.has_slow_disk,
        )
