"""Two administrators at once: whatever they ask for, and wherever the one is interrupted by the other, the
outcome is that of one after the other.

Each pair is tried at one moment, which the seed draws; tests/simulation/test_all_admin_pairs.py tries all.
"""

from __future__ import annotations

import asyncio
import inspect
import random

import pytest

from faircopy.api.routes import ROUTES
from faircopy.errors import InvariantViolation
from faircopy.serving.route import Route
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.seeds import seed_for
from tests.simulation.admin_model import SIDES, Request, grow
from tests.simulation.admin_pairs import Administrators, begin, ends, moments_of
from tests.simulation.test_made_again import on_stage, restart

ALONE = "forget loader"
CHANGING = ("Create", "Delete", "AlterConfigs", "Incremental", "Forget", "Backup", "OffsetDelete")
"""How the names of administrators' requests that change something begin."""


def test_all_requests_that_change_something_are_tried() -> None:
    wanted = {
        each.handle
        for each in ROUTES.values()
        if isinstance(each, Route) and each.schema.name.startswith(CHANGING)
    }
    assert len(wanted) >= 10
    assert wanted <= {inspect.unwrap(request.handler) for side in SIDES.values() for request in side}


@pytest.mark.parametrize("one", SIDES)
def test_two_at_once_come_to_what_one_after_the_other_does(one: str) -> None:
    chosen = random.Random(seed_for(f"admin pairs, {one}"))
    moments = moments_of(one, ALONE, 0)
    for other in SIDES:
        moments_of(one, other, chosen.randrange(moments))


async def queue(stage: Stage, *requests: Request) -> list[tuple[object, ...]]:
    """Let these requests wait for one another, in this order, behind somebody who changes topics."""
    administrators = Administrators(stage)
    asked: list[asyncio.Future[list[tuple[object, ...]]]] = []

    async def ask_all() -> None:
        async with stage.broker.administration.unchanged():
            for request in requests:
                asked.append(asyncio.ensure_future(administrators.do((request,))))
                await asyncio.sleep(0.01)

    await stage.in_broker(ask_all())
    return [(await each)[0] for each in asked]


def test_messages_of_a_topic_that_two_have_grown_at_once_outlive_a_restart() -> None:
    async def scene(stage: Stage) -> None:
        await begin(stage)
        answers = await queue(stage, grow("a", 4), grow("a", 3))
        assert answers == [(ErrorCode.NONE,), (ErrorCode.INVALID_PARTITIONS,)]
        await stage.plain.send("a-3", [1], 0)
        await restart(stage)
        assert (await ends(stage))["a-3"] == 1

    on_stage(scene)


def test_a_partition_that_is_hosted_is_never_made_and_keeps_its_files() -> None:
    """Whatever is wrong with the number of partitions."""

    async def scene(stage: Stage) -> None:
        await begin(stage)
        before = await ends(stage)
        hosted_topics = stage.broker.hosted

        async def make() -> None:
            with pytest.raises(InvariantViolation, match="hosted already"):
                await stage.broker.administration._make(hosted_topics.known("a"), 0, 2)

        await stage.in_broker(make())
        assert await ends(stage) == before
        await restart(stage)
        assert await ends(stage) == before

    on_stage(scene)


def test_a_topic_that_is_deleted_while_metadata_makes_it_is_not_there() -> None:
    """The request is answered all the same."""

    async def scene(stage: Stage) -> None:
        make, known = stage.broker.administration.create, stage.broker.hosted.known

        async def make_and_lose(*asked: object) -> object:
            made = await make(*asked)  # type: ignore[arg-type]
            await stage.broker.administration.delete({"c": lambda: known("c")})
            return made

        object.__setattr__(stage.broker.settings, "auto_create_topics", True)
        stage.broker.administration.create = make_and_lose  # type: ignore[method-assign, assignment]
        body = {"topics": [{"name": "c"}], "allow_auto_topic_creation": True}
        answer = await stage.remote.ask(ApiKey.METADATA, 4, body)
        assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE

    on_stage(scene)
