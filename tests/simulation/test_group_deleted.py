"""A group that somebody joins while its deletion is on its way to disk is a new one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from faircopy.copier.group_metadata import GroupMetadata
from faircopy.wire.api_keys import ApiKey
from tests.crash_states.stage import Stage
from tests.simulation.member import SimulatedMember
from tests.simulation.refold import differences
from tests.simulation.test_made_again import on_stage

MOMENTS = 24
STEP_SECONDS = 0.000_15
GENERATION = 7


async def ask_to_delete(stage: Stage) -> None:
    await stage.remote.ask(ApiKey.DELETE_GROUPS, 1, {"groups_names": ["readers"]})


async def expire(stage: Stage) -> None:
    await stage.in_broker(stage.broker.offsets.expire(-1, stage.broker.groups.is_active))


@pytest.mark.parametrize("end", [ask_to_delete, expire])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_who_joins_meanwhile_joins_another(end: Callable[[Stage], Awaitable[None]], moment: int) -> None:
    async def scene(stage: Stage) -> None:
        await stage.broker.offsets.store_group("readers", GroupMetadata(GENERATION, "consumer"))
        task = asyncio.ensure_future(end(stage))
        await asyncio.sleep(moment * STEP_SECONDS)
        await SimulatedMember(stage.remote, "readers", ["a-0"], random.Random(0)).knock()
        await task
        await asyncio.sleep(1)
        assert list(differences(stage.broker)) == []

    on_stage(scene)
