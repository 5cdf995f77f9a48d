"""A group that is deleted, or whose offsets expire, while somebody joins it or commits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from faircopy.groups.group_metadata import GroupMetadata
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.member import SimulatedMember
from tests.simulation.refold import differences
from tests.simulation.test_made_again import on_stage

MOMENTS = 24
STEP_SECONDS = 0.000_15
GENERATION = 7


async def ask_to_delete(stage: Stage) -> None:
    answer = await stage.remote.ask(ApiKey.DELETE_GROUPS, 1, {"groups_names": ["readers"]})
    assert answer.results[0].error_code == ErrorCode.NONE


async def expire(stage: Stage) -> None:
    await stage.in_broker(stage.offsets_journals.expire(-1, stage.groups.is_active))


@pytest.mark.parametrize("end", [ask_to_delete, expire])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_who_joins_meanwhile_joins_another(end: Callable[[Stage], Awaitable[None]], moment: int) -> None:
    async def scene(stage: Stage) -> None:
        await stage.offsets_journals.store_group("readers", GroupMetadata(GENERATION, "consumer"))
        task = asyncio.ensure_future(end(stage))
        await asyncio.sleep(moment * STEP_SECONDS)
        await SimulatedMember(stage.remote, "readers", ["a-0"], random.Random(0)).knock()
        await task
        await asyncio.sleep(1)
        assert list(differences(stage.broker)) == []

    on_stage(scene)


async def commit_plainly(stage: Stage) -> None:
    await stage.in_broker(stage.offsets_journals.commit("readers", stage.offsets(9, "a")))


async def commit_in_a_transaction(stage: Stage) -> None:
    await stage.producer.send_offsets("readers", {"a-0": 9})
    await stage.producer.end(committed=True)


@pytest.mark.parametrize("commit", [commit_plainly, commit_in_a_transaction])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_what_is_committed_while_the_offset_before_expires_stays(
    commit: Callable[[Stage], Awaitable[None]], moment: int
) -> None:
    async def scene(stage: Stage) -> None:
        await stage.offsets_journals.commit("readers", stage.offsets(5, "a"))
        await asyncio.sleep(10)
        task = asyncio.ensure_future(commit(stage))
        await asyncio.sleep(moment * STEP_SECONDS)
        await stage.in_broker(stage.offsets_journals.expire(5_000, stage.groups.is_active))
        await task
        await asyncio.sleep(1)
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        assert await consumer.committed("readers", "a-0") == 9

    on_stage(scene)


async def delete_offsets(stage: Stage) -> None:
    topics = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in ("a", "b")]
    answer = await stage.remote.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "readers", "topics": topics})
    assert answer.error_code == ErrorCode.NONE


async def commit_two_plainly(stage: Stage) -> None:
    await stage.in_broker(stage.offsets_journals.commit("readers", stage.offsets(9, "a", "b")))


async def commit_two_in_a_transaction(stage: Stage) -> None:
    await stage.producer.send_offsets("readers", {"a-0": 9, "b-0": 9})
    await stage.producer.end(committed=True)


@pytest.mark.parametrize("commit", [commit_two_plainly, commit_two_in_a_transaction])
@pytest.mark.parametrize("delete", [ask_to_delete, delete_offsets])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_what_is_committed_meanwhile_is_deleted_as_a_whole_or_not_at_all(
    commit: Callable[[Stage], Awaitable[None]], delete: Callable[[Stage], Awaitable[None]], moment: int
) -> None:
    async def scene(stage: Stage) -> None:
        await stage.offsets_journals.commit("readers", stage.offsets(5, "a"))
        task = asyncio.ensure_future(commit(stage))
        await asyncio.sleep(moment * STEP_SECONDS)
        await delete(stage)
        await task
        await asyncio.sleep(1)
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        offsets = [await consumer.committed("readers", name) for name in ("a-0", "b-0")]
        assert offsets in ([-1, -1], [9, 9])

    on_stage(scene)
