"""Shards are closed and led again, one by one, while clients go on."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from faircopy.datalog.read import DamagedLog
from faircopy.groups.group_metadata import GroupMetadata
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import Value
from tests.crash_states.stage import SETTINGS, TABLES_SETTINGS, TOPICS, Stage
from tests.crash_states.sweep import table_of
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.producer import SimulatedProducer
from tests.simulation.quiet import unfinished
from tests.simulation.refold import differences
from tests.simulation.test_made_again import on_stage

SHARDS = 3
SPREAD = replace(SETTINGS, shards=SHARDS, metadata_journals=SHARDS, offsets_partitions=SHARDS)
TABLES = replace(TABLES_SETTINGS, shards=SHARDS, metadata_journals=SHARDS, offsets_partitions=SHARDS)
TOPIC = "spread"
PARTITIONS = [f"{TOPIC}-{number}" for number in range(SHARDS)]  # one in each shard
MOMENTS = 16
STEP_SECONDS = 0.000_15
PAUSE_SECONDS = 0.05
CALM_SECONDS = 0.3
PATIENCE_SECONDS = 120.0


def on_spread_stage(scene: Callable[[Stage], Awaitable[None]], seed: int = 0) -> None:
    """Play a scene with a broker of three shards, and a topic that has a partition in each. `seed` decides
    how long everything takes.
    """

    async def prepared(stage: Stage) -> None:
        await stage.make_topic(TOPIC, SHARDS, {})
        async with asyncio.timeout(PATIENCE_SECONDS):
            await scene(stage)

    on_stage(prepared, SPREAD, seed)


async def lead_anew(stage: Stage, shard: int, pause_seconds: float = PAUSE_SECONDS) -> None:
    """Close a shard, and lead it again after a while."""
    await stage.in_broker(stage.broker.shards.close(shard))
    await asyncio.sleep(pause_seconds)
    await stage.in_broker(stage.broker.shards.lead(shard))


def shard_of(stage: Stage, topic: str) -> int:
    """The shard of a topic's first partition."""
    return stage.broker.shards.shard_of(stage.broker.hosted.topics[topic].partitions[0].id)


async def values_of(stage: Stage, partition: str) -> list[Value]:
    """All visible values of a partition."""
    consumer = SimulatedConsumer(stage.remote, [partition], is_committed=True)
    consumer.positions[partition] = await consumer.bound(partition, EARLIEST)
    end = await consumer.bound(partition, LATEST)
    values: list[Value] = []
    while consumer.positions[partition] < end:
        values += [read.value for read in await consumer.poll()]
    return values


async def shown(stage: Stage) -> list[list[Value]]:
    """The values of all partitions, once nothing is on its way any more."""
    await asyncio.sleep(1)
    assert list(differences(stage.broker)) == []
    return [await values_of(stage, partition) for partition in PARTITIONS]


@pytest.mark.parametrize(
    "shards", [*itertools.permutations(range(SHARDS), 1), *itertools.permutations(range(SHARDS))]
)
def test_an_open_transaction_goes_on(shards: tuple[int, ...]) -> None:
    """Even if several shards are closed at a time, in whichever order they come back."""

    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        for number, partition in enumerate(PARTITIONS):
            await stage.producer.send(partition, [10 + number], 0)
        await stage.producer.send_offsets("readers", {"a-0": 7})
        for shard in range(SHARDS):
            if shard in shards:
                await stage.in_broker(stage.broker.shards.close(shard))
        for shard in shards:
            await asyncio.sleep(PAUSE_SECONDS)
            await stage.in_broker(stage.broker.shards.lead(shard))
        for number, partition in enumerate(PARTITIONS):
            await stage.producer.send(partition, [20 + number], 0)
        await stage.producer.end(committed=True)
        assert await shown(stage) == [[10, 20], [11, 21], [12, 22]]
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        assert await consumer.committed("readers", "a-0") == 7

    on_spread_stage(scene)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_what_is_being_decided_is_decided_once(moment: int, shard: int, committed: bool) -> None:
    """Meanwhile one shard is led again: the coordinator's, or a participant's."""

    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        for partition in PARTITIONS:
            await stage.producer.send(partition, [1], 0)
        ending = asyncio.ensure_future(stage.producer.end(committed=committed))
        await asyncio.sleep(moment * STEP_SECONDS)
        await lead_anew(stage, shard)
        await ending
        for partition in PARTITIONS:
            await stage.plain.send(partition, [2], 0)
        assert await shown(stage) == [[1, 2] if committed else [2]] * len(PARTITIONS)
        assert list(unfinished(stage.broker, checkpoints=False)) == []

    on_spread_stage(scene)


def test_a_late_request_is_still_told_from_others() -> None:
    """KAFKA-17754: the connection on which it comes has been replaced, and stays so under the next leader.

    Found by the simulation: a commit that was repeated on an old connection ended the next transaction.
    """

    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        await stage.producer.end(committed=True)
        newer = SimulatedProducer.restored(stage.producer.snapshot(), stage.second_remote, random.Random(0))
        await newer.add_partitions(PARTITIONS)
        for shard in range(SHARDS):
            await lead_anew(stage, shard)
        repeated = stage.producer._who() | {"committed": True}
        late = await stage.producer._remote.ask(ApiKey.END_TXN, 3, repeated)
        assert late.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        await newer.end(committed=False)

    on_spread_stage(scene)


@pytest.mark.parametrize("seed", range(16))
def test_groups_are_shown_in_one_order(seed: int) -> None:
    """G0 holds even if a participant learns of some commits only when it is led again."""
    chosen = random.Random(seed)

    async def commit(producer: SimulatedProducer, first: int) -> None:
        for number in range(first, first + 20):
            await producer.add_partitions(PARTITIONS)
            for partition in PARTITIONS:
                await producer.send(partition, [number], 0)
            await producer.end(committed=True)

    async def scene(stage: Stage) -> None:
        writing = asyncio.gather(commit(stage.producer, 100), commit(stage.other, 200))
        while not writing.done():
            await lead_anew(stage, chosen.randrange(SHARDS), chosen.random() * PAUSE_SECONDS)
            await asyncio.sleep(chosen.random() * CALM_SECONDS)
        await writing
        first, *others = await shown(stage)
        assert set(first) == {*range(100, 120), *range(200, 220)}
        assert len(first) == 40
        assert others == [first] * len(others)

    on_spread_stage(scene, seed)


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_ranks_do_not_fall_if_the_coordinator_is_not_led_when_a_participant_is(moment: int) -> None:
    """A participant misses the APPLY of a transaction that another has. It is led again before the
    transaction's coordinator, and meanwhile others commit there.
    """

    async def scene(stage: Stage) -> None:
        shards = stage.broker.shards
        coordinator = shards._placement.shard_of_transactions("red/1")
        assert shards._placement.shard_of_transactions("green/1") != coordinator
        first, second = [
            name
            for number, name in enumerate(PARTITIONS)
            if shards.shard_of(stage.broker.hosted.topics[TOPIC].partitions[number].id) != coordinator
        ]
        missing = shards.shard_of(stage.broker.hosted.topics[TOPIC].partitions[PARTITIONS.index(first)].id)
        await stage.producer.add_partitions([first, second])
        for partition in (first, second):
            await stage.producer.send(partition, [1], 0)
        ending = asyncio.ensure_future(stage.producer.end(committed=True))
        await asyncio.sleep(moment * STEP_SECONDS)
        for shard in (missing, coordinator):
            await stage.in_broker(shards.close(shard))
        await stage.in_broker(shards.lead(missing))
        await stage.other.add_partitions([first, second])
        for partition in (first, second):
            await stage.other.send(partition, [2], 0)
        await stage.other.end(committed=True)
        await stage.in_broker(shards.lead(coordinator))
        await ending
        await asyncio.sleep(1)
        assert list(differences(stage.broker)) == []
        assert await values_of(stage, first) == await values_of(stage, second)

    on_spread_stage(scene, seed=moment)


def test_members_and_offsets_stay() -> None:
    async def scene(stage: Stage) -> None:
        await stage.offsets_journals.store_group("readers", GroupMetadata(7, "consumer"))
        await stage.offsets_journals.commit("readers", stage.offsets(5, "a"))
        for shard in range(SHARDS):
            await lead_anew(stage, shard)
        kept = stage.offsets_journals.kept_group("readers")
        assert kept is not None
        assert kept.metadata.generation == 7
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        assert await consumer.committed("readers", "a-0") == 5

    on_spread_stage(scene)


def test_what_is_not_led_is_refused_and_nothing_is_half_shown() -> None:
    async def codes(stage: Stage) -> set[int]:
        answer = await stage.remote.ask(ApiKey.METADATA, 9, {"topics": [{"name": topic} for topic in TOPICS]})
        return {partition.error_code for topic in answer.topics for partition in topic.partitions}

    async def scene(stage: Stage) -> None:
        for shard in range(SHARDS):
            await stage.in_broker(stage.broker.shards.close(shard))
        assert await codes(stage) == {ErrorCode.LEADER_NOT_AVAILABLE}
        asked = {
            "topics": [
                {
                    "name": "new",
                    "num_partitions": 1,
                    "replication_factor": 1,
                    "assignments": [],
                    "configs": [],
                }
            ],
            "timeout_ms": 1_000,
        }
        answer = await stage.remote.ask(ApiKey.CREATE_TOPICS, 5, asked)
        assert answer.topics[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer = await stage.remote.ask(ApiKey.DELETE_GROUPS, 1, {"groups_names": ["readers"]})
        assert answer.results[0].error_code == ErrorCode.NOT_COORDINATOR
        for shard in range(SHARDS):
            await stage.in_broker(stage.broker.shards.lead(shard))
        assert await codes(stage) == {ErrorCode.NONE}
        await stage.make_topic("new", 1, {})

    on_spread_stage(scene)


def test_a_table_waits_until_all_is_led() -> None:
    async def scene(stage: Stage) -> None:
        other = (shard_of(stage, "a") + 1) % SHARDS
        before = len(table_of(stage.machine).reads)
        await stage.in_broker(stage.broker.shards.close(other))
        await stage.plain.send("a-0", [1], 0)
        await stage.publish()
        assert len(table_of(stage.machine).reads) == before
        await stage.in_broker(stage.broker.shards.lead(other))
        await stage.publish()
        assert len(table_of(stage.machine).reads) == before + 1

    on_stage(scene, TABLES)


def test_a_partition_that_is_damaged_meanwhile_does_not_keep_its_shard_from_closing() -> None:
    async def scene(stage: Stage) -> None:
        await stage.plain.send("spread-0", [1], 0)
        partition = stage.broker.hosted.topics[TOPIC].partitions[0]
        damage = DamagedLog("a batch is damaged")

        async def find_damage() -> None:
            partition.fail(damage)
            raise damage

        with mock.patch.object(partition.sink, "sync", find_damage):
            await stage.in_broker(stage.broker.shards.close(shard_of(stage, TOPIC)))
        assert partition.failure is damage
        await stage.in_broker(stage.broker.shards.lead(shard_of(stage, TOPIC)))
        assert (await shown(stage))[0] == [1]

    on_spread_stage(scene)


def test_each_leader_has_an_epoch_of_its_own() -> None:
    async def ends(stage: Stage) -> list[int]:
        epoch = stage.broker.hosted.topics["a"].partitions[0].leader_epoch
        found = []
        for asked in (epoch - 1, epoch):
            topics = [{"topic": "a", "partitions": [{"partition": 0, "leader_epoch": asked}]}]
            answer = await stage.remote.ask(
                ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, {"replica_id": -1, "topics": topics}
            )
            found.append(answer.topics[0].partitions[0].end_offset)
        return found

    async def scene(stage: Stage) -> None:
        await stage.plain.send("a-0", [1, 2, 3], 0)
        await lead_anew(stage, shard_of(stage, "a"))
        assert await ends(stage) == [3, 3]
        await stage.plain.send("a-0", [4, 5], 0)
        assert await ends(stage) == [3, 5]

    on_spread_stage(scene)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_what_is_acknowledged_outlives_a_kill_while_a_shard_is_not_led(shard: int) -> None:
    """The shard is closed at each moment of a commit, which is then acknowledged or not."""
    acks: set[bool] = set()

    async def scene(stage: Stage, moment: int) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        for partition in PARTITIONS:
            await stage.producer.send(partition, [1], 0)
        ending = asyncio.ensure_future(stage.producer.end(committed=True))
        await asyncio.sleep(moment * STEP_SECONDS)
        await stage.in_broker(stage.broker.shards.close(shard))
        await asyncio.sleep(PAUSE_SECONDS)
        was_acked = ending.done()
        acks.add(was_acked)
        stage.machine.kill()
        await stage.machine.start()
        await asyncio.wait([ending])
        assert ending.exception() is None or not was_acked
        first, *others = await shown(stage)
        assert first == [1] or not was_acked
        assert others == [first] * len(others)

    for moment in range(MOMENTS):
        on_spread_stage(partial(scene, moment=moment))
    assert acks == {False, True}
