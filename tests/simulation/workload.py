"""What the clients of a simulation do, and its history."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.checker.history import (
    Committed,
    End,
    Final,
    Offset,
    Operation,
    Poll,
    Read,
    Result,
    Send,
    Snapshot,
    Transaction,
    Value,
)
from tests.simulation import aging
from tests.simulation.administrator import FOREIGN, PARTITION, Administrator
from tests.simulation.aging import Aging
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.machine import DIRECTORY, EARLY_SECONDS_A_BOOT, Machine
from tests.simulation.member import SimulatedMember
from tests.simulation.network import Disconnected, Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer
from tests.simulation.tables import rows_of

TOPICS = {"a": 2, "b": 1}
PARTITIONS = [f"{topic}-{number}" for topic, count in TOPICS.items() for number in range(count)]
TRANSACTIONAL_IDS = ["red/1", "red/2", "green/1"]
ABORT_CHANCE = 0.1
HANG_CHANCE = 0.03
OFFSETS_CHANCE = 0.3
SHORT_CHANCE = 0.1
CRASH_CHANCE = 0.05
ZOMBIE_CHANCE = 0.3
THINK_SECONDS = 0.5
BATCH_RECORDS_MAX = 3
ASK_CHANCE = 0.5
LOOK_SECONDS = 10.0
TABLE = "both"
MEMBERS = 2
MEMBERS_GROUP = "members"
MET = ZOMBIE, CRASHED, HUNG, IN_A_TOPIC_THAT_GOES = (
    "client: a zombie goes on",
    "client: crashed",
    "client: hung past its timeout",
    "producer: in a topic that may go at any time",
)


@dataclass
class Attempt:
    """One transaction or plain send under way. If it never finishes, its result stays unknown."""

    process: str
    group: str | None
    begun: float
    commit_asked: float | None = None
    ended: float | None = None
    result: Result = Result.UNKNOWN
    sends: list[Send] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)

    def finish(self, result: Result, now: float) -> None:
        self.result, self.ended = result, now

    def operation(self, now: float) -> Transaction:
        """Its operation in a history. An unfinished one lasts until `now`."""
        return Transaction(
            self.process,
            self.group,
            self.begun,
            self.commit_asked,
            self.ended if self.ended is not None else now,
            self.result,
            list(self.sends),
            offsets=list(self.offsets),
        )


class Workload:
    """All clients of one run. `stop` lets them finish their work."""

    def __init__(
        self, loop: VirtualLoop, machine: Machine, chosen: random.Random, coverage: Coverage
    ) -> None:
        self._loop = loop
        self._machine = machine
        self._chosen = chosen
        self._coverage = coverage
        coverage.announce(*MET)
        self._values = itertools.count(1)
        self._names = itertools.count(1)
        self._attempts: list[Attempt] = []
        self._polls: list[Poll] = []
        self._told: list[End | Committed] = []
        self._finals: list[Final] = []
        self._snapshots: list[Snapshot] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._identities: set[tuple[int, int]] = set()
        self._aging = Aging(
            self._remote(Life("aging")),
            self._random(),
            loop.time,
            lambda: machine.boots * EARLY_SECONDS_A_BOOT,
        )
        self._readers: list[SimulatedConsumer] = []
        self._keep: list[object] = []

    # -- clients ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Create the topics, and start the clients."""
        remotes = self._remote(Life("administrator")), self._remote(Life("neighbour"))
        administrator = Administrator(*remotes, self._random(), self._loop.time)
        for name, partitions in TOPICS.items():
            # Both topics are in one table, which then shows whole transactions.
            await administrator.make_topic(name, partitions, {"plain.table": TABLE})
        self._spawn(self._administer(administrator))
        await administrator.make_topic(aging.TOPIC, 1, aging.SETTINGS)
        self._spawn(self._aging.run(lambda: self._is_stopping, self._machine.clock.wall_ms))
        for transactional_id in TRANSACTIONAL_IDS:
            self._spawn(self._transactional(transactional_id))
        self._spawn(self._plain())
        for is_committed in (False, True):
            self._spawn(self._reader(is_committed))
        for _ in range(MEMBERS):
            self._spawn(self._members())
        if self._machine.has_tables:
            self._spawn(self._look_at_table())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._loop.create_task(work))

    def _remote(self, life: Life) -> Remote:
        return Remote(
            lambda: self._machine.connect(life), self._machine.weather, self._random(), self._coverage
        )

    def _random(self) -> random.Random:
        return random.Random(self._chosen.getrandbits(64))

    async def stop(self) -> None:
        """Let all clients finish. Raises what a client failed with."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks)

    async def _think(self, chosen: random.Random) -> None:
        await asyncio.sleep(chosen.random() * THINK_SECONDS)

    # -- transactions ----------------------------------------------------------------------------------------

    async def _transactional(self, transactional_id: str) -> None:
        """Run instance after instance of one application. Each ends by a crash, or because it is fenced."""
        chosen = self._random()
        while not self._is_stopping:
            name = f"{transactional_id}#{next(self._names)}"
            life = Life(name)
            instance = self._loop.create_task(
                self._instance(name, transactional_id, life, self._random()), context=life.context
            )
            self._keep.append(instance)
            crash_at = self._loop.now + chosen.expovariate(CRASH_CHANCE)
            while not instance.done() and not self._is_stopping and self._loop.now < crash_at:
                await asyncio.sleep(0.1)
            if self._is_stopping:
                await instance
            elif not instance.done():
                self._end_instance(life, chosen)

    def _end_instance(self, life: Life, chosen: random.Random) -> None:
        """Crash the application, or let it only seem to crash and go on beside its successor."""
        if chosen.random() < ZOMBIE_CHANCE:
            self._coverage.hit(ZOMBIE)
        else:
            self._coverage.hit(CRASHED)
            life.end()

    async def _instance(self, name: str, transactional_id: str, life: Life, chosen: random.Random) -> None:
        remote = self._remote(life)
        producer = SimulatedProducer(remote, transactional_id, chosen, self._identities)
        try:
            await producer.begin_life()
            while not self._is_stopping:
                await self._think(chosen)
                await producer.prepare_next()
                await self._transaction(name, transactional_id, producer, remote, chosen)
        except Refused as error:
            self._coverage.hit(f"producer: ended by {error.code.name}")
        except GaveUp:
            self._coverage.hit("producer: gave up")

    async def _transaction(
        self,
        name: str,
        transactional_id: str,
        producer: SimulatedProducer,
        remote: Remote,
        chosen: random.Random,
    ) -> None:
        """Run one transaction. Raises Refused, GaveUp if this instance can't go on."""
        attempt = Attempt(name, transactional_id.split("/")[0], self._loop.now)
        self._attempts.append(attempt)
        if not await self._write(attempt, producer, chosen):
            attempt.finish(Result.FAILED, self._loop.now)
            await producer.end(committed=False)
            return
        if chosen.random() < HANG_CHANCE:
            self._coverage.hit(HUNG)
            await asyncio.sleep(12)
        attempt.commit_asked = self._loop.now
        try:
            await producer.end(committed=True)
        except Refused as error:
            if error.is_certain:
                attempt.finish(Result.FAILED, self._loop.now)
            raise
        attempt.finish(Result.OK, self._loop.now)
        if chosen.random() < ASK_CHANCE:
            await self._ask(attempt, remote, chosen)

    async def _ask(self, attempt: Attempt, remote: Remote, chosen: random.Random) -> None:
        """Ask, right after the ack, for the end of a partition and the group's committed offsets (P8)."""
        consumer = SimulatedConsumer(remote, PARTITIONS, is_committed=chosen.random() < 0.5)
        name = chosen.choice(attempt.sends).partition
        asked = self._loop.now
        self._told.append(End(name, asked, await consumer.bound(name, LATEST)))
        for group, partition, _ in attempt.offsets:
            asked = self._loop.now
            offset = await consumer.committed(group, partition)
            self._told.append(Committed(group, partition, asked, self._loop.now, offset))

    async def _write(self, attempt: Attempt, producer: SimulatedProducer, chosen: random.Random) -> bool:
        """Do everything but the end. False if the transaction has to be aborted."""
        partitions = chosen.sample(PARTITIONS, chosen.randint(1, len(PARTITIONS)))
        try:
            await producer.add_partitions(partitions)
            for _ in range(chosen.randint(1, 2)):
                sends = [
                    (chosen.choice(partitions), self._new_values(chosen)) for _ in range(chosen.randint(1, 6))
                ]
                attempt.sends += [Send(name, value) for name, values in sends for value in values]
                for batch in await producer.send_all(sends, self._machine.clock.wall_ms()):
                    batch.offset()
            if chosen.random() < SHORT_CHANCE:
                self._coverage.hit(IN_A_TOPIC_THAT_GOES)
                await producer.add_partitions([PARTITION])
                await producer.send(PARTITION, [FOREIGN], self._machine.clock.wall_ms())
            if chosen.random() < OFFSETS_CHANCE:
                name, group = chosen.choice(PARTITIONS), group_of(attempt.process)
                attempt.offsets = [Offset(group, name, next(self._values))]
                await producer.send_offsets(group, {name: attempt.offsets[0].offset})
        except (Refused, GaveUp) as error:
            self._coverage.hit(f"producer: aborts after {error}")
            return False
        return chosen.random() >= ABORT_CHANCE

    # -- administration --------------------------------------------------------------------------------------

    async def _administer(self, administrator: Administrator) -> None:
        """Create and delete topics, groups and records."""
        chosen = self._random()
        errands: dict[str, Callable[[], Awaitable[None]]] = {
            "a topic came and went": administrator.live_through_a_topic,
            "a group came and went": lambda: administrator.live_through_a_group(PARTITIONS),
        }
        if not self._machine.has_tables:  # a table may hold more than its log does then
            errands["records deleted"] = lambda: self._trim(administrator, chosen)
        self._coverage.announce(*(f"administrator: {name}" for name in errands))
        while not self._is_stopping:
            name = chosen.choice(list(errands))
            await errands[name]()
            self._coverage.hit(f"administrator: {name}")
            await self._think(chosen)

    async def _trim(self, administrator: Administrator, chosen: random.Random) -> None:
        """Delete records that both readers have read."""
        name = chosen.choice(PARTITIONS)
        await administrator.trim(name, min((reader.positions[name] for reader in self._readers), default=0))

    # -- plain messages and readers --------------------------------------------------------------------------

    async def _plain(self) -> None:
        chosen = self._random()
        while not self._is_stopping:
            producer = SimulatedProducer(self._remote(Life("plain")), None, chosen, self._identities)
            try:
                await producer.begin_life()
                while not self._is_stopping:
                    await self._think(chosen)
                    await self._plain_send(producer, chosen)
            except (Refused, GaveUp) as error:
                self._coverage.hit(f"plain producer: ended by {error}")

    def _new_values(self, chosen: random.Random) -> list[Value]:
        return [next(self._values) for _ in range(chosen.randint(1, BATCH_RECORDS_MAX))]

    async def _plain_send(self, producer: SimulatedProducer, chosen: random.Random) -> None:
        """Send some batches, each of which is as atomic as a transaction."""
        name = chosen.choice(PARTITIONS)
        sends = [(name, self._new_values(chosen)) for _ in range(chosen.randint(1, 7))]
        attempts = [self._plain_attempt(name, values) for _, values in sends]
        batches = await producer.send_all(sends, self._machine.clock.wall_ms())
        for attempt, batch in zip(attempts, batches, strict=True):
            if batch.is_written:
                attempt.sends = with_offsets(attempt.sends, batch.base_offset)
                attempt.finish(Result.OK, self._loop.now)
            elif isinstance(batch.error, Refused) and batch.error.is_certain:
                attempt.finish(Result.FAILED, self._loop.now)
        written = [batch.base_offset for batch in batches if batch.is_written and batch.base_offset >= 0]
        assert written == sorted(written), f"batches of {name} were sent in order, but are at {written}"
        for batch in batches:
            batch.offset()

    def _plain_attempt(self, name: str, values: list[Value]) -> Attempt:
        attempt = Attempt("plain", None, self._loop.now, self._loop.now)
        attempt.sends = [Send(name, value) for value in values]
        self._attempts.append(attempt)
        return attempt

    async def _reader(self, is_committed: bool) -> None:
        name = f"reader of {'committed' if is_committed else 'all'}"
        consumer = SimulatedConsumer(self._remote(Life(name)), PARTITIONS, is_committed=is_committed)
        self._readers.append(consumer)
        while not self._is_stopping:
            try:
                reads = await consumer.poll()
            except Disconnected:
                await asyncio.sleep(0.2)
                continue
            if reads:
                self._polls.append(Poll(name, consumer.seeks, self._loop.now, reads))
            else:
                await asyncio.sleep(0.05)

    # -- a consumer group ------------------------------------------------------------------------------------

    async def _members(self) -> None:
        """Run one member of a group after another."""
        chosen = self._random()
        while not self._is_stopping:
            name = f"member#{next(self._names)}"
            member = SimulatedMember(self._remote(Life(name)), MEMBERS_GROUP, PARTITIONS, self._random())
            until = self._loop.now + chosen.expovariate(CRASH_CHANCE)
            while not self._is_over(until):
                await member.run_once(
                    partial(self._is_over, until), partial(self._given, name), partial(self._commit, name)
                )
            await self._think(chosen)

    def _is_over(self, until: float) -> bool:
        return self._is_stopping or self._loop.now >= until

    def _given(self, name: str, assignment: str, reads: list[Read]) -> None:
        self._polls.append(Poll(f"{name} as {assignment}", 0, self._loop.now, reads))

    def _commit(self, name: str, offsets: dict[str, int]) -> Callable[[bool], None]:
        """Note that offsets are about to be committed."""
        attempt = Attempt(name, None, self._loop.now, self._loop.now)
        attempt.offsets = [Offset(MEMBERS_GROUP, partition, offset) for partition, offset in offsets.items()]
        self._attempts.append(attempt)
        return lambda is_done: attempt.finish(Result.OK if is_done else Result.UNKNOWN, self._loop.now)

    # -- the plain table -------------------------------------------------------------------------------------

    async def _look_at_table(self) -> None:
        """Read the table now and then, even while the broker is down."""
        chosen = self._random()
        while not self._is_stopping:
            await asyncio.sleep(chosen.expovariate(1 / LOOK_SECONDS))
            self.look_at_table()

    def look_at_table(self) -> int:
        """Read the plain table. Returns its number of rows."""
        rows = rows_of(self._machine.disk, DIRECTORY / "plain" / TABLE)
        self._snapshots.append(Snapshot("+".join(TOPICS), self._loop.now, rows))
        return len(rows)

    # -- the end ---------------------------------------------------------------------------------------------

    async def read_all(self) -> None:
        """Read every partition from its start to its end, with fresh clients."""
        for name in PARTITIONS:
            consumer = SimulatedConsumer(self._remote(Life("final")), [name], is_committed=True)
            start, end = await consumer.bound(name, EARLIEST), await consumer.bound(name, LATEST)
            consumer.positions[name] = start
            reads: list[Read] = []
            while consumer.positions[name] < end:
                try:
                    reads += await consumer.poll()
                except Disconnected:
                    await asyncio.sleep(0.2)
            self._finals.append(Final(name, start, end, reads))
            asked = self._loop.now
            offset = await consumer.committed(MEMBERS_GROUP, name)
            self._told.append(Committed(MEMBERS_GROUP, name, asked, self._loop.now, offset))

    async def outlive_all(self) -> None:
        """Wait until what has a short retention is gone. Raises AssertionError."""
        await self._aging.ensure_all_goes()

    @property
    def messages(self) -> int:
        """How many messages the final reads found."""
        return sum(len(final.reads) for final in self._finals)

    def history(self) -> list[Operation]:
        """All operations, in order of their start."""
        transactions = [attempt.operation(self._loop.now) for attempt in self._attempts]
        return [*transactions, *self._polls, *self._told, *self._snapshots, *self._finals]


def with_offsets(sends: list[Send], base_offset: int) -> list[Send]:
    """The messages of a batch with their offsets. For a batch written long ago, the broker returns none."""
    if base_offset < 0:
        return sends
    return [send._replace(offset=base_offset + number) for number, send in enumerate(sends)]


def group_of(process: str) -> str:
    """The consumer group whose offsets an application commits, the same for all its instances."""
    return f"readers of {process.split('#')[0]}"
