"""A replica set whose journals are in two shards: a joint transaction is in both, and a follower is killed in
the midst of its commit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from faircopy.shard.placement import Placement
from tests.checker.history import Value
from tests.crash_states.stage import SETTINGS, Stage
from tests.crash_states.sweep import in_a_world
from tests.simulation.complaints import Complaints, listening
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.here import on
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS, SimulatedProducer
from tests.simulation.replica_sets.comparison import unequal
from tests.simulation.replica_sets.machines import FollowerMachine, LeaderMachine
from tests.simulation.replica_sets.replica_set import ReplicaSet

SHARDS = 2
SPREAD = replace(SETTINGS, shards=SHARDS, metadata_journals=3, offsets_partitions=3)
TOPIC = "spread"
PARTITIONS = [f"{TOPIC}-{number}" for number in range(SHARDS)]  # one in each shard
MEMBERS = 2
RUN, KEY = "run", 1
HELD_SECONDS = 2.0
PATIENCE_SECONDS = 60.0


class SetOnStage:
    """Three machines without faults, but for those that the scene causes. Clients are those of `stage`."""

    def __init__(self, loop: VirtualLoop) -> None:
        chosen, coverage = random.Random(0), Coverage()
        replica_set = ReplicaSet(loop, 3, chosen, coverage)
        self.leader = LeaderMachine(loop, SPREAD, chosen, coverage, replica_set, has_slow_disk=False)
        self.followers = [
            FollowerMachine(loop, SPREAD, chosen, coverage, replica_set, member, has_slow_disk=False)
            for member in (1, 2)
        ]
        self.stage = Stage(loop, SPREAD, chosen)
        self.stage.machine = self.leader

    async def begin(self) -> None:
        """Start all three, and make a topic with a partition in each shard."""
        await asyncio.gather(start(self.leader), *map(start, self.followers))
        await self.stage.make_topic(TOPIC, SHARDS, {})
        hosted = self.stage.broker.hosted.topics[TOPIC].partitions
        assert {self.stage.broker.shards.shard_of(each.id) for each in hosted} == {0, 1}

    async def until_equal(self) -> None:
        """Wait until all followers have the journals of all shards as the leader has them. What the leader
        notes without waiting for it is sent with the next fsync: here there is one.
        """
        while any(unequal(self.leader, each) for each in self.followers):
            for journal in self.stage.broker.journals():
                await self.stage.in_broker(journal.durable())
            await asyncio.sleep(0.1)

    async def go_on_with(self, heir: FollowerMachine) -> None:
        """The leader and its disk are gone; a follower, killed too, leads alone."""
        for each in (self.leader, *self.followers):
            with on(each):
                each.kill()
        heir.leaves_set = True
        await start(heir)
        self.stage.machine = heir

    def ensure_sound(self) -> None:
        """No process has found anything wrong."""
        for each in (self.leader, *self.followers):
            assert (each.failures, each.differences) == ([], [])


async def start(machine: Machine) -> None:
    """Start a process, as often as it takes: nobody follows before the set is made."""
    with on(machine):
        while not machine.is_up:
            await machine.start()


def on_set_stage(scene: Callable[[SetOnStage], Awaitable[None]]) -> None:
    """Play a scene in a set."""

    async def play(loop: VirtualLoop) -> None:
        complaints = Complaints()
        played = SetOnStage(loop)
        with listening(complaints), played.leader:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await played.begin()
                await scene(played)
            played.ensure_sound()
            for each in played.followers:
                with on(each):
                    each.kill()
        assert complaints.found == []

    in_a_world(play)


def group_in(shard: int) -> str:
    """A joint group whose coordinator is in this shard."""
    placement = Placement(SHARDS, SPREAD.metadata_journals, SPREAD.offsets_partitions)
    names = (f"job {number}" for number in range(100))
    return next(name for name in names if placement.shard_of_transactions(name) == shard)


async def written(stage: Stage, group: str) -> list[SimulatedProducer]:
    """Members of a joint group; each has written to both shards."""
    members = []
    for number in range(MEMBERS):
        member = await SimulatedProducer.join(
            stage.remote, random.Random(0), group, RUN, KEY, f"task {number}"
        )
        assert member is not None
        await member.add_partitions(PARTITIONS)
        for partition in PARTITIONS:
            await member.send(partition, [stage.next_value()], 0)
        members.append(member)
    return members


async def commit(stage: Stage, group: str, members: list[SimulatedProducer]) -> None:
    await SimulatedProducer.end_joint(
        stage.second_remote, random.Random(0), group, RUN, KEY, members, committed=True
    )


async def shown(stage: Stage) -> list[list[Value]]:
    """The visible values of each partition, without those that are on their way."""
    found = []
    for partition in PARTITIONS:
        consumer = SimulatedConsumer(stage.remote_of("reader"), [partition], is_committed=True)
        consumer.positions[partition] = 0
        values: list[Value] = []
        while reads := await consumer.poll(0):
            values += [read.value for read in reads]
        found.append(sorted(values))
    return found


async def settled(stage: Stage) -> list[list[Value]]:
    """The visible values, once nothing is on its way: only then is the end of a partition told."""
    for partition in PARTITIONS:
        await SimulatedConsumer(stage.remote_of("reader"), [], is_committed=True).bound(partition, LATEST)
    return await shown(stage)


NOTHING: list[list[Value]] = [[], []]
EVERYTHING: list[list[Value]] = [[1, 3], [2, 4]]


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("heir", [0, 1])
def test_a_commit_in_two_shards_waits_for_a_follower_that_was_killed(shard: int, heir: int) -> None:
    """Whichever shard decides, and whoever goes on without the leader then: also who was killed."""

    async def scene(played: SetOnStage) -> None:
        stage, group = played.stage, group_in(shard)
        members = await written(stage, group)
        killed = played.followers[1]
        with on(killed):
            killed.kill()
        committing = asyncio.ensure_future(commit(stage, group, members))
        await asyncio.sleep(HELD_SECONDS)
        assert not committing.done()
        assert await shown(stage) == NOTHING
        await start(killed)
        await committing
        assert await settled(stage) == EVERYTHING
        await played.until_equal()
        await played.go_on_with(played.followers[heir])
        assert await settled(stage) == EVERYTHING

    on_set_stage(scene)


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("heir", [0, 1])
def test_a_commit_in_two_shards_that_was_never_answered_is_whole_or_not_there(shard: int, heir: int) -> None:
    async def scene(played: SetOnStage) -> None:
        stage, group = played.stage, group_in(shard)
        members = await written(stage, group)
        with on(played.followers[1]):
            played.followers[1].kill()
        committing = asyncio.ensure_future(commit(stage, group, members))
        await asyncio.sleep(HELD_SECONDS)
        committing.cancel()
        await played.go_on_with(played.followers[heir])
        await asyncio.sleep(2 * TRANSACTION_TIMEOUT_MS / 1000)
        assert await settled(stage) in (NOTHING, EVERYTHING)

    on_set_stage(scene)
