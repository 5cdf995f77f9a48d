"""A stop cancels requests under way. Those that wait for the disk are gone before it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from faircopy.groups.group_metadata import GroupMetadata
from faircopy.wire.api_keys import ApiKey
from tests.crash_states import scenarios
from tests.crash_states.stage import Stage
from tests.simulation.test_made_again import on_stage, restart

Work = Callable[[Stage], Coroutine[Any, Any, object]]

MOMENTS = 16
STEP_SECONDS = 0.000_15
PATIENCE_SECONDS = 60


async def commit_offsets(stage: Stage) -> None:
    await stage.offsets_journals.commit("readers", stage.offsets(5, "a"))


async def expire_offsets(stage: Stage) -> None:
    await stage.offsets_journals.expire(-1, lambda _group: False)


async def store_a_group(stage: Stage) -> None:
    await stage.offsets_journals.store_group("readers", GroupMetadata(1, "consumer"))


async def commit_offsets_in_a_transaction(stage: Stage) -> None:
    await stage.producer.send_offsets("readers", {"b-0": 7})


async def commit(stage: Stage) -> None:
    await stage.producer.add_partitions(["a-0"])
    await stage.producer.send("a-0", [stage.next_value()], 0)
    await stage.producer.end(committed=True)


async def delete_records(stage: Stage) -> None:
    asked = {
        "topics": [{"name": "a", "partitions": [{"partition_index": 0, "offset": 1}]}],
        "timeout_ms": 10_000,
    }
    await stage.remote.ask(ApiKey.DELETE_RECORDS, 2, asked)


@pytest.mark.parametrize(
    "work",
    [commit_offsets, expire_offsets, store_a_group, commit_offsets_in_a_transaction, commit, delete_records],
)
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_the_others_go_on(work: Work, moment: int) -> None:
    async def scene(stage: Stage) -> None:
        await stage.send_plain("a-0")
        await commit_offsets(stage)
        task = stage.machine.loop.create_task(work(stage), context=stage.machine.life.context)
        await asyncio.sleep(moment * STEP_SECONDS)
        for cancelled in (task, *stage.broker.dispatcher._tasks):
            cancelled.cancel()
        await asyncio.wait_for(restart(stage), PATIENCE_SECONDS)
        await scenarios.plain(stage)

    on_stage(scene)
