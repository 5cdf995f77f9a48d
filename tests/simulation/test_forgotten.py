"""Transactional ids that are used once and forgotten leave nothing behind, in no partition."""

from __future__ import annotations

import asyncio
import random

from tests.checker.history import Value
from tests.crash_states.scenarios import forgetting_all
from tests.crash_states.stage import Stage
from tests.known_transactions import known_transactions
from tests.simulation.producer import SimulatedProducer
from tests.simulation.quiet import remembered_in_vain
from tests.simulation.test_led_anew import PARTITIONS, TOPIC, on_spread_stage, shard_of, values_of

IDS = 12


async def use_many_ids(stage: Stage) -> list[Value]:
    """Commit one transaction each in all partitions, and return the values in each."""
    for number in range(IDS):
        producer = SimulatedProducer(stage.remote, f"job-{number}", random.Random(0))
        await producer.begin_life()
        await producer.add_partitions(PARTITIONS)
        for partition in PARTITIONS:
            await producer.send(partition, [number], 0)
        await producer.end(committed=True)
    return list(range(IDS))


def remembered(stage: Stage) -> int:
    """How many transactions all partitions remember."""
    return sum(len(known_transactions(each.state)) for each in stage.broker.shards.partitions())


def test_an_id_that_is_used_once_leaves_nothing_behind() -> None:
    async def scene(stage: Stage) -> None:
        values = await use_many_ids(stage)
        await asyncio.sleep(1)
        assert remembered(stage) == IDS * len(PARTITIONS)
        with forgetting_all():
            await stage.in_broker(stage.broker.shards.forget_idle())
        assert remembered(stage) == 0
        assert all(not len(each.state.producers) for each in stage.broker.shards.partitions())
        assert [await values_of(stage, partition) for partition in PARTITIONS] == [values] * len(PARTITIONS)

    on_spread_stage(scene)


def test_a_partition_without_a_leader_is_told_by_its_next_one() -> None:
    async def scene(stage: Stage) -> None:
        await use_many_ids(stage)
        await asyncio.sleep(1)
        shard = shard_of(stage, TOPIC)
        await stage.in_broker(stage.broker.shards.close(shard))
        with forgetting_all():
            await stage.in_broker(stage.broker.shards.forget_idle())
        await stage.in_broker(stage.broker.shards.lead(shard))
        await stage.in_broker(stage.broker.shards.forget_gone())
        assert remembered(stage) > 0, "the ids that the closed shard coordinates are still known"
        assert list(remembered_in_vain(stage.broker)) == []

    on_spread_stage(scene)


def test_an_id_that_is_forgotten_may_be_used_again() -> None:
    async def scene(stage: Stage) -> None:
        await use_many_ids(stage)
        with forgetting_all():
            await stage.in_broker(stage.broker.shards.forget_idle())
        values = await use_many_ids(stage)
        await asyncio.sleep(1)
        assert await values_of(stage, PARTITIONS[0]) == [*values, *values]

    on_spread_stage(scene)
