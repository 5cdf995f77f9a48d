"""A topic is deleted in the middle of whatever the broker does for it: all who wait get an answer."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from faircopy.copier.log_copier import INLINE_COPY_DRAFTS
from faircopy.wire.api_keys import ApiKey
from tests.crash_states import scenarios
from tests.crash_states.stage import SETTINGS, Stage
from tests.crash_states.sweep import in_a_world
from tests.simulation.complaints import Complaints, listening
from tests.simulation.loop import VirtualLoop
from tests.simulation.producer import GaveUp, Refused
from tests.simulation.quiet import ensure_quiet

Work = Callable[[Stage], Awaitable[None]]

MOMENTS = 40
STEP_SECONDS = 0.000_15
PATIENCE_SECONDS = 60


async def produce(stage: Stage) -> None:
    while True:
        await stage.plain.send("c-0", [stage.next_value()], 0)


async def commit(stage: Stage) -> None:
    await stage.producer.add_partitions(["a-0", "c-0"])
    for name in ("a-0", "c-0"):
        await stage.producer.send(name, [stage.next_value()], 0)
    await stage.producer.end(committed=True)


async def commit_much(stage: Stage) -> None:
    """Commit so much that the copy takes the slow path."""
    await stage.producer.add_partitions(["c-0"])
    for _ in range(INLINE_COPY_DRAFTS + 1):
        await stage.producer.send("c-0", [stage.next_value()], 0)
    await stage.producer.end(committed=True)
    await asyncio.sleep(0.01)


async def abort(stage: Stage) -> None:
    await stage.producer.add_partitions(["c-0"])
    await stage.producer.send("c-0", [stage.next_value()], 0)
    await stage.producer.end(committed=False)


async def checkpoint(stage: Stage) -> None:
    await stage.plain.send("c-0", [stage.next_value()], 0)
    await stage.in_broker(stage.broker.checkpoint(all_changed=True))


@pytest.mark.parametrize("work", [produce, commit, commit_much, abort, checkpoint])
def test_a_topic_is_deleted_at_any_moment(work: Work) -> None:
    for moment in range(MOMENTS):
        in_a_world(partial(delete_at, work=work, moment=moment))


async def delete_at(loop: VirtualLoop, work: Work, moment: int) -> None:
    complaints = Complaints()
    stage = Stage(loop, replace(SETTINGS, checkpoint_interval_ms=1_000), random.Random(moment))
    with stage.machine, listening(complaints):
        await stage.begin()
        stage.machine.disk.before = lambda _: None
        await stage.make_topic("c", 1, {})
        task = asyncio.create_task(carry_out(work, stage))
        await asyncio.sleep(moment * STEP_SECONDS)
        await stage.remote.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["c"], "timeout_ms": 10_000})
        await asyncio.wait_for(task, PATIENCE_SECONDS)
        # The others go on: those of the same group, and in the same partitions.
        await scenarios.commit(stage)
        await ensure_quiet(stage.broker)
    assert not stage.coverage.counts["network: a request timed out"], "a request was never answered"
    assert complaints.found == []


async def carry_out(work: Work, stage: Stage) -> None:
    with contextlib.suppress(Refused, GaveUp):
        await work(stage)
