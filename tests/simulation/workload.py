"""What the clients of a simulation do."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from tests.checker.history import (
    Committed,
    Final,
    Offset,
    Operation,
    Poll,
    Read,
    Result,
    Send,
    Snapshot,
    Value,
)
from tests.simulation import aging
from tests.simulation.administrator import Administrator
from tests.simulation.aging import Aging
from tests.simulation.applications import Applications
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.cut_reader import CutReader
from tests.simulation.joint_jobs import JointJobs
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.machine import DIRECTORY, EARLY_SECONDS_A_BOOT, Machine
from tests.simulation.member import SimulatedMember
from tests.simulation.namesakes import Namesakes
from tests.simulation.network import Disconnected
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer
from tests.simulation.record import Attempt, with_offsets
from tests.simulation.scene import CRASH_CHANCE, PARTITIONS, TOPICS, Scene
from tests.simulation.tables import rows_of

TRANSACTIONAL_IDS = ["red/1", "red/2", "green/1"]
JOBS = ["blue", "grey"]
LOOK_SECONDS = 10.0
CUT_SECONDS = 2.0
LIMITS: list[dict[str, int]] = [
    {},
    {"limit_rows": 1},
    {"limit_rows": 20},
    {"limit_rows": 200},
    {"limit_bytes": 2_000},
]
TABLE = "both"
MEMBERS = 2
MEMBERS_GROUP = "members"


class Workload:
    """All clients of one run, each a task. `stop` lets them finish their work."""

    def __init__(
        self, loop: VirtualLoop, machine: Machine, chosen: random.Random, coverage: Coverage
    ) -> None:
        self._scene = Scene(loop, machine, chosen, coverage)
        self._record = self._scene.record
        self._applications = Applications(self._scene)
        self._joint_jobs = JointJobs(self._scene)
        self._namesakes = Namesakes(self._scene, self._applications, JOBS, [MEMBERS_GROUP])
        self.tasks: list[asyncio.Task[None]] = []
        self._aging = Aging(
            self._scene.remote(Life("aging")),
            self._scene.chance(),
            loop.time,
            lambda: machine.boots * EARLY_SECONDS_A_BOOT,
        )
        self._readers: list[SimulatedConsumer | CutReader] = []

    # -- clients ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Create the topics, and start the clients."""
        remotes = self._scene.remote(Life("administrator")), self._scene.remote(Life("neighbour"))
        administrator = Administrator(*remotes, self._scene.chance(), self._scene.loop.time)
        for name, partitions in TOPICS.items():
            # Both topics are in one table, which then shows whole transactions.
            await administrator.make_topic(name, partitions, {"plain.table": TABLE})
        self._spawn(self._administer(administrator))
        await administrator.make_topic(aging.TOPIC, 1, aging.SETTINGS)
        self._spawn(self._aging.run(lambda: self._scene.is_stopping, self._scene.machine.clock.wall_ms))
        for transactional_id in TRANSACTIONAL_IDS:
            self._spawn(self._applications.run(transactional_id))
        for job in JOBS:
            self._spawn(self._joint_jobs.run(job))
        self._spawn(self._plain())
        for is_committed in (False, True):
            self._spawn(self._reader(is_committed))
        for _ in range(MEMBERS):
            self._spawn(self._members())
        if self._scene.machine.has_tables:
            self._spawn(self._look_at_table())
        self._spawn(self._read_by_cuts())
        self._spawn(self._namesakes.run())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(self._scene.loop.create_task(work))

    async def stop(self) -> None:
        """Let all clients finish. Raises what a client failed with."""
        self._scene.is_stopping = True
        await asyncio.gather(*self.tasks)

    # -- administration --------------------------------------------------------------------------------------

    async def _administer(self, administrator: Administrator) -> None:
        """Create and delete topics, groups and records."""
        chosen = self._scene.chance()
        errands: dict[str, Callable[[], Awaitable[None]]] = {
            "a topic came and went": administrator.live_through_a_topic,
            "a group came and went": lambda: administrator.live_through_a_group(PARTITIONS),
        }
        if not self._scene.machine.has_tables:  # a table may hold more than its log does then
            errands["records deleted"] = lambda: self._trim(administrator, chosen)
        self._scene.coverage.announce(*(f"administrator: {name}" for name in errands))
        while not self._scene.is_stopping:
            name = chosen.choice(list(errands))
            await errands[name]()
            self._scene.coverage.hit(f"administrator: {name}")
            await self._scene.think(chosen)

    async def _trim(self, administrator: Administrator, chosen: random.Random) -> None:
        """Delete records that both readers have read."""
        name = chosen.choice(PARTITIONS)
        await administrator.trim(name, min((reader.positions[name] for reader in self._readers), default=0))

    # -- plain messages and readers --------------------------------------------------------------------------

    async def _plain(self) -> None:
        chosen = self._scene.chance()
        while not self._scene.is_stopping:
            producer = SimulatedProducer(
                self._scene.remote(Life("plain")), None, chosen, self._scene.identities
            )
            try:
                await producer.begin_life()
                while not self._scene.is_stopping:
                    await self._scene.think(chosen)
                    await self._plain_send(producer, chosen)
            except (Refused, GaveUp) as error:
                self._scene.coverage.hit(f"plain producer: ended by {error}")

    async def _plain_send(self, producer: SimulatedProducer, chosen: random.Random) -> None:
        """Send some batches, each of which is as atomic as a transaction."""
        name = chosen.choice(PARTITIONS)
        sends = [(name, self._scene.new_values(chosen)) for _ in range(chosen.randint(1, 7))]
        attempts = [self._plain_attempt(name, values) for _, values in sends]
        batches = await producer.send_all(sends, self._scene.machine.clock.wall_ms())
        for attempt, batch in zip(attempts, batches, strict=True):
            if batch.is_written:
                attempt.sends = with_offsets(attempt.sends, batch.base_offset)
                attempt.finish(Result.OK, self._scene.now)
            elif isinstance(batch.error, Refused) and batch.error.is_certain:
                attempt.finish(Result.FAILED, self._scene.now)
        written = [batch.base_offset for batch in batches if batch.is_written and batch.base_offset >= 0]
        assert written == sorted(written), f"batches of {name} were sent in order, but are at {written}"
        for batch in batches:
            batch.offset()

    def _plain_attempt(self, name: str, values: list[Value]) -> Attempt:
        attempt = Attempt("plain", None, self._scene.now, self._scene.now)
        attempt.sends = [Send(name, value) for value in values]
        self._record.attempts.append(attempt)
        return attempt

    async def _reader(self, is_committed: bool) -> None:
        name = f"reader of {'committed' if is_committed else 'all'}"
        consumer = SimulatedConsumer(self._scene.remote(Life(name)), PARTITIONS, is_committed=is_committed)
        self._readers.append(consumer)
        while not self._scene.is_stopping:
            try:
                reads = await consumer.poll()
            except Disconnected:
                await asyncio.sleep(0.2)
                continue
            if reads:
                self._record.polls.append(Poll(name, consumer.seeks, self._scene.now, reads))
            else:
                await asyncio.sleep(0.05)

    async def _read_by_cuts(self) -> None:
        """Read all partitions by cuts, some of them limited. What they have so far is like a table."""
        chosen = self._scene.chance()
        remote = self._scene.remote(Life("reader by cuts"))
        reader = CutReader(remote, PARTITIONS, lambda: self._scene.is_stopping)
        self._readers.append(reader)
        divides_plain = False
        while not self._scene.is_stopping:
            await asyncio.sleep(chosen.expovariate(1 / CUT_SECONDS))
            limits = chosen.choice(LIMITS)
            with contextlib.suppress(Disconnected):
                if await reader.read_on(**limits):
                    self._scene.coverage.hit(f"cut: limited by {', '.join(limits) or 'nothing'}")
                    # A cut below a limit of bytes may leave a batch divided that an earlier one divided.
                    divides_plain = bool(limits) and (divides_plain or "limit_rows" in limits)
                    rows = list(reader.reads)
                    table = Snapshot("+".join(TOPICS), self._scene.now, rows, divides_plain)
                    self._record.snapshots.append(table)

    # -- a consumer group ------------------------------------------------------------------------------------

    async def _members(self) -> None:
        """Run one member of a group after another."""
        chosen = self._scene.chance()
        while not self._scene.is_stopping:
            name = f"member#{next(self._scene.names)}"
            member = SimulatedMember(
                self._scene.remote(Life(name)), MEMBERS_GROUP, PARTITIONS, self._scene.chance()
            )
            until = self._scene.now + chosen.expovariate(CRASH_CHANCE)
            while not self._is_over(until):
                await member.run_once(
                    partial(self._is_over, until), partial(self._given, name), partial(self._commit, name)
                )
            await self._scene.think(chosen)

    def _is_over(self, until: float) -> bool:
        return self._scene.is_stopping or self._scene.now >= until

    def _given(self, name: str, assignment: str, reads: list[Read]) -> None:
        self._record.polls.append(Poll(f"{name} as {assignment}", 0, self._scene.now, reads))

    def _commit(self, name: str, offsets: dict[str, int]) -> Callable[[bool], None]:
        """Note that offsets are about to be committed."""
        attempt = Attempt(name, None, self._scene.now, self._scene.now)
        attempt.offsets = [Offset(MEMBERS_GROUP, partition, offset) for partition, offset in offsets.items()]
        self._record.attempts.append(attempt)
        return lambda is_done: attempt.finish(Result.OK if is_done else Result.UNKNOWN, self._scene.now)

    # -- the plain table -------------------------------------------------------------------------------------

    async def _look_at_table(self) -> None:
        """Read the table now and then, even while the broker is down."""
        chosen = self._scene.chance()
        while not self._scene.is_stopping:
            await asyncio.sleep(chosen.expovariate(1 / LOOK_SECONDS))
            self.look_at_table()

    def look_at_table(self) -> int:
        """Read the plain table. Returns its number of rows."""
        rows = rows_of(self._scene.machine.disk, DIRECTORY / "plain" / TABLE)
        self._record.snapshots.append(Snapshot("+".join(TOPICS), self._scene.now, rows))
        return len(rows)

    # -- another machine -------------------------------------------------------------------------------------

    def move_to(self, machine: Machine) -> None:
        """Go on with the broker of another machine, which has what this one has acknowledged."""
        machine.losses[:0] = self._scene.machine.losses
        self._scene.machine = machine

    # -- the end ---------------------------------------------------------------------------------------------

    async def read_all(self) -> None:
        """Read every partition from its start to its end, with fresh clients."""
        finals, self._record.finals = self._record.finals, []
        self._record.polls += [
            Poll(f"former reader of {each.partition}", 0, self._scene.now, each.reads) for each in finals
        ]
        for name in PARTITIONS:
            consumer = SimulatedConsumer(self._scene.remote(Life("final")), [name], is_committed=True)
            start, end = await consumer.bound(name, EARLIEST), await consumer.bound(name, LATEST)
            consumer.positions[name] = start
            reads: list[Read] = []
            while consumer.positions[name] < end:
                try:
                    reads += await consumer.poll()
                except Disconnected:
                    await asyncio.sleep(0.2)
            self._record.finals.append(Final(name, start, end, reads))
            asked = self._scene.now
            offset = await consumer.committed(MEMBERS_GROUP, name)
            self._record.told.append(Committed(MEMBERS_GROUP, name, asked, self._scene.now, offset))

    async def outlive_all(self) -> None:
        """Wait until what has a short retention is gone. Raises AssertionError."""
        await self._aging.ensure_all_goes()

    @property
    def messages(self) -> int:
        """How many messages the final reads found."""
        return sum(len(final.reads) for final in self._record.finals)

    def history(self) -> list[Operation]:
        """All operations, in order of their start."""
        return self._record.history(self._scene.now, self._scene.machine.losses)
