"""A simulated machine without faults, on which a scenario plays, with a snapshot before each of its I/Os."""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from faircopy.broker.broker import Broker
from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.offsets import CommittedOffset, Offsets
from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.publish import spark_log
from faircopy.settings.table import Settings
from tests.checker.history import KeyCommitted, Operation, Poll, Result, Send, Value
from tests.crash_states.topics import KnownTopic, Owner
from tests.simulation.administrator import Administrator
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.lying_disk import Operation as DiskOperation
from tests.simulation.machine import Machine
from tests.simulation.network import Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer, Snapshot
from tests.simulation.record import Attempt
from tests.simulation.store import Contents

SETTINGS = Settings(
    metadata_journals=1,
    offsets_partitions=1,
    journal_segment_bytes=1_200,
    topic_segment_bytes=400,
    checkpoint_interval_ms=3_600_000,
    retention_check_interval_ms=3_600_000,
    auto_create_topics=False,
    plain_enabled=False,
)
TABLES_SETTINGS = replace(SETTINGS, plain_enabled=True, plain_interval_ms=1_000)
TOPICS = {"a": 1, "b": 1}
TABLE = "both"
PUBLISHED_BEFORE = spark_log.COMPACT_INTERVAL - 1
TRIES = 80  # a disk may be stuck for seconds: nobody gives up for that


Rest = Callable[[], list[Send]]
"""What a client has yet to send."""


@dataclass(frozen=True)
class Moment:
    """A crash right before an I/O: the disk and the state store as they are, and what clients know then.

    `boots` counts the losses of power so far. `survivors` are clients that outlive the crash and go on.
    `topics` are those that come and go. `has_slow_disk`: see `Machine`.
    """

    operation: DiskOperation
    time: float
    disk: LyingDisk
    contents: Contents
    history: list[Operation]
    boots: int
    survivors: tuple[Survivor, ...] = ()
    topics: tuple[KnownTopic, ...] = ()
    has_slow_disk: bool = False


def moment_of(
    machine: Machine,
    operation: DiskOperation,
    history: list[Operation],
    survivors: tuple[Survivor, ...] = (),
    topics: tuple[KnownTopic, ...] = (),
) -> Moment:
    """A snapshot of a machine as it is now."""
    disk = machine.disk.with_root(copy.deepcopy(machine.disk.root))
    contents = copy.deepcopy(machine.contents)
    return Moment(
        operation,
        machine.loop.now,
        disk,
        contents,
        history,
        machine.boots,
        survivors,
        topics,
        machine.has_slow_disk,
    )


@dataclass(frozen=True)
class Survivor:
    """The client of an open transaction: what it knows, and what it still has to send."""

    producer: Snapshot
    attempt: Attempt
    rest: list[Send]

    @classmethod
    def of(cls, producer: SimulatedProducer, attempt: Attempt, rest: list[Send]) -> Survivor:
        """A snapshot of the client as it is now."""
        return cls(producer.snapshot(), replace(attempt, sends=list(attempt.sends)), rest)

    async def go_on(self, remote: Remote, now: Callable[[], float]) -> Operation:
        """Send the rest, and commit. What is refused has failed, to the client."""
        producer = SimulatedProducer.restored(self.producer, remote, random.Random(0))
        attempt = replace(self.attempt, sends=[*self.attempt.sends, *self.rest])
        try:
            for send in self.rest:
                await producer.add_partitions([send.partition])
                await producer.send(send.partition, [send.value], 0)
            if attempt.commit_asked is None:
                attempt.commit_asked = now()
            await producer.end(committed=True)
            attempt.finish(Result.OK, now())
        except Refused as error:
            attempt.refused(error, now())
            if error.is_certain and self.attempt.commit_asked is None:
                attempt.finish(Result.FAILED, now())
        except GaveUp:
            pass
        return attempt.operation(now())


class Stage:
    """One machine with its clients. After `begin`, every I/O is recorded in `moments`."""

    def __init__(
        self, loop: VirtualLoop, settings: Settings, chosen: random.Random, *, has_slow_disk: bool = False
    ) -> None:
        self._loop = loop
        self.coverage = Coverage()
        self.machine = Machine(loop, settings, chosen, self.coverage, has_slow_disk=has_slow_disk)
        self._values = itertools.count(1)
        self._attempts: list[Attempt] = []
        self._polls: list[Poll] = []
        self.told: list[KeyCommitted] = []
        self.moments: list[Moment] = []
        self._open: list[tuple[SimulatedProducer, Attempt, Rest]] = []
        self.remote = self.remote_of("remote")
        self.second_remote = self.remote_of("second")
        self.plain = SimulatedProducer(self.remote_of("plain"), None, chosen, tries=TRIES)
        self.producer = SimulatedProducer(self.remote_of("red"), "red/1", chosen, tries=TRIES)
        self.other = SimulatedProducer(self.remote_of("green"), "green/1", chosen, tries=TRIES)
        self.third_remote = self.remote_of("third")
        self.topics = Owner(self.remote, self.next_value)

    def remote_of(self, name: str) -> Remote:
        """The way of one more client to the broker."""
        life = Life(name)
        return Remote(
            lambda: self.machine.connect(life), self.machine.weather, random.Random(0), self.coverage
        )

    async def begin(self) -> None:
        """Start, create topics and producers, make everything durable. A table is about to be compacted."""
        await self.machine.start()
        for topic, partitions in TOPICS.items():
            await self.make_topic(topic, partitions, {"plain.table": TABLE})
        for producer in (self.plain, self.producer, self.other):
            await producer.begin_life()
        if self.machine.has_tables:
            for _ in range(PUBLISHED_BEFORE):
                await self.send_plain("a-0")
                await self.publish()
        await self.in_broker(self.broker.checkpoint(all_changed=True))
        self.machine.disk.sync_everything()
        self.machine.disk.before = self._look

    def _look(self, operation: DiskOperation) -> None:
        survivors = tuple(Survivor.of(producer, attempt, rest()) for producer, attempt, rest in self._open)
        self.moments.append(
            moment_of(self.machine, operation, self.history(), survivors, self.topics.known())
        )

    def end(self) -> None:
        """Record the last moment, after everything."""
        self._look(DiskOperation(0, "the end", self.machine.directory))

    @property
    def broker(self) -> Broker:
        assert self.machine.broker is not None
        return self.machine.broker

    @property
    def offsets_journals(self) -> OffsetsJournals:
        """The journals that keep the offsets of the group "readers"."""
        return self.broker.shards.offsets_of("readers")

    @property
    def groups(self) -> GroupCoordinator:
        """The coordinator of the group "readers"."""
        return self.broker.shards.groups_of("readers")

    @property
    def now(self) -> float:
        return self._loop.now

    async def in_broker(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work` as the broker."""
        await self._loop.create_task(work, context=self.machine.life.context)

    async def make_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        await Administrator(self.remote, self.remote, random.Random(0), self._loop.time).make_topic(
            name, partitions, configs
        )

    def offsets(self, offset: int, *topics: str) -> Offsets:
        """`offset` for the first partition of each topic, committed now."""
        now_ms = self.broker.clock.steady_ms()
        places = (self.broker.hosted.known(topic).topic.partition_id(0) for topic in topics)
        return {place: CommittedOffset(offset, -1, "", now_ms) for place in places}

    async def send_plain(self, partition: str) -> None:
        """Send one batch of two messages."""
        attempt = self.attempt("plain", None)
        offset = await self.plain.send(partition, self.values(attempt, partition, 2), 0)
        attempt.sends = [
            Send(partition, send.value, offset + number) for number, send in enumerate(attempt.sends)
        ]
        attempt.finish(Result.OK, self.now)

    async def publish(self) -> None:
        """Wait until the table has been published, if there was anything to publish."""
        await asyncio.sleep(2 * TABLES_SETTINGS.plain_interval_ms / 1000)

    async def read(self, partition: str) -> None:
        """Read a partition with all that was acknowledged, even if it is still being copied into the log."""
        consumer = SimulatedConsumer(self.remote, [partition], is_committed=True)
        await consumer.bound(partition, LATEST)
        self._polls.append(Poll(f"reader {len(self._polls)}", 0, self.now, await consumer.poll(0)))

    def leave_open(self, producer: SimulatedProducer, attempt: Attempt, partition: str) -> None:
        """Leave this transaction open: after a crash, its client sends one more message and commits."""
        self._open.append((producer, attempt, lambda: [Send(partition, self.next_value())]))

    def leave_to_end(self, producer: SimulatedProducer, attempt: Attempt, rest: list[Send]) -> None:
        """Leave this transaction open: after a crash, its client sends the rest, perhaps again, and
        commits, perhaps again.
        """
        self._open.append((producer, attempt, lambda: rest))

    # -- the history -----------------------------------------------------------------------------------------

    def attempt(self, process: str, group: str | None) -> Attempt:
        attempt = Attempt(process, group, self.now, self.now if group is None else None)
        self._attempts.append(attempt)
        return attempt

    def next_value(self) -> int:
        return next(self._values)

    def values(self, attempt: Attempt, partition: str, count: int) -> list[Value]:
        """New values, which the attempt sends."""
        found: list[Value] = [self.next_value() for _ in range(count)]
        attempt.sends = [*attempt.sends, *(Send(partition, value) for value in found)]
        return found

    def history(self) -> list[Operation]:
        """What the clients know now."""
        still_open = [attempt for _, attempt, _ in self._open]
        transactions = [
            attempt.operation(self.now) for attempt in self._attempts if attempt not in still_open
        ]
        return [*transactions, *self._polls, *self.told]
