"""In a set, each request is answered once other replicas have its entries, and nothing is shown before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from faircopy.copier.fold import Standing
from faircopy.journal.errors import NotEnoughReplicas
from faircopy.journal.shipping import NotShipped
from faircopy.serving.config_resources import BROKER, TOPIC
from faircopy.settings.table import Settings
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import SETTINGS, Stage
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS
from tests.simulation.replicas import EVERY_HOLD, Bound, Hold, Place, Replicas, place_of, replicated
from tests.simulation.test_made_again import on_stage
from tests.simulation.waiting_requests import (
    AT_ONCE_SECONDS,
    BEGUN,
    CASES,
    DECIDED,
    Case,
    commit_at_5,
    configure,
    open_in,
    send,
)

HELD_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
SET_SETTINGS = replace(SETTINGS, producer_id_block=1)

# -- what others see -----------------------------------------------------------------------------------------


async def shown(stage: Stage) -> dict[str, Any]:
    """What other clients see of all of it."""
    remote = stage.third_remote
    metadata = await remote.ask(ApiKey.METADATA, 9, {"topics": None})
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": [setting]}
        for kind, name, setting in ((TOPIC, "a", "max.message.bytes"), (BROKER, "1", "plain.grace.ms"))
    ]
    configs = await remote.ask(ApiKey.DESCRIBE_CONFIGS, 1, {"resources": resources})
    consumer = SimulatedConsumer(remote, ["a-0"], is_committed=True)
    start = await consumer.bound("a-0", EARLIEST)
    spans = await remote.ask(
        ApiKey.SPANS, 0, {"name": "a", "partition": 0, "start_offset": start, "end_offset": 1 << 60}
    )
    return {
        "topics": {topic.name: len(topic.partitions) for topic in metadata.topics},
        "configs": [row.value for result in configs.results for row in result.configs],
        "messages": await consumer.poll(0),
        "start": start,
        "spans": [(span.first_offset, span.last_offset) for span in spans.spans],
    }


async def told(stage: Stage) -> tuple[int | None, int | None]:
    """The end of a partition, and the offset of a group. None stands for a broker that waits before it tells
    them: perhaps they are about to change.
    """
    reader = SimulatedConsumer(stage.remote_of("reader"), [], is_committed=True)
    other = SimulatedConsumer(stage.remote_of("other reader"), [], is_committed=True)
    return (
        await at_once(reader.bound("a-0", LATEST)),
        await at_once(other.committed("readers", "a-0", require_stable=False)),
    )


async def at_once(asking: Coroutine[Any, Any, int]) -> int | None:
    try:
        return await asyncio.wait_for(asking, AT_ONCE_SECONDS)
    except TimeoutError:
        return None


# -- the tests -----------------------------------------------------------------------------------------------


def play(
    scene: Callable[[Stage, Replicas], Coroutine[Any, Any, None]], settings: Settings = SET_SETTINGS
) -> None:
    """Play a scene in a set. What hangs, fails."""
    with replicated() as replicas:
        on_stage(lambda stage: asyncio.wait_for(scene(stage, replicas), PATIENCE_SECONDS), settings)


async def the_rest(playing: AsyncGenerator[None]) -> None:
    async for _ in playing:
        pass


@pytest.mark.parametrize(
    ("case", "hold"),
    [(case, hold) for case in CASES for hold in case.holds],
    ids=lambda each: each.scene.__name__ if isinstance(each, Case) else str(each),
)
def test_the_answer_waits_until_the_replicas_have_it(case: Case, hold: Hold) -> None:
    async def scene(stage: Stage, replicas: Replicas) -> None:
        playing = case.scene(stage)
        await anext(playing)
        await asyncio.sleep(HELD_SECONDS)
        before, told_before = await shown(stage), await told(stage)
        replicas.hold(hold)
        answered = asyncio.ensure_future(the_rest(playing))
        await asyncio.sleep(HELD_SECONDS)
        assert not answered.done()
        assert await shown(stage) == before
        assert all(now in (then, None) for now, then in zip(await told(stage), told_before, strict=True))
        replicas.hold()
        await answered
        await asyncio.sleep(HELD_SECONDS)
        assert ((await shown(stage), await told(stage)) != (before, told_before)) == case.is_shown

    play(scene)


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, hold.place) for case in CASES for hold in case.holds if hold.bound is Bound.KEPT],
    ids=lambda each: each.scene.__name__ if isinstance(each, Case) else each.name.lower(),
)
def test_if_acks_of_drafts_are_durable_so_is_what_they_rest_on(case: Case, place: Place) -> None:
    async def scene(stage: Stage, replicas: Replicas) -> None:
        playing = case.scene(stage)
        await anext(playing)
        await asyncio.sleep(HELD_SECONDS)
        replicas.hold(Hold(place, Bound.DURABLE))
        answered = asyncio.ensure_future(the_rest(playing))
        await asyncio.sleep(HELD_SECONDS)
        assert not answered.done()
        replicas.hold()
        await answered

    play(scene, replace(SET_SETTINGS, transactional_ack="durable"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scene.__name__)
def test_the_answer_waits_for_nothing_else(case: Case) -> None:
    async def scene(stage: Stage, replicas: Replicas) -> None:
        playing = case.scene(stage)
        await anext(playing)
        await asyncio.sleep(HELD_SECONDS)
        kept = {Hold(each.place, Bound.KEPT) for each in case.holds}  # as all is that is durable
        replicas.hold(*EVERY_HOLD - set(case.holds) - kept)
        answered = asyncio.ensure_future(the_rest(playing))
        await asyncio.sleep(HELD_SECONDS)
        assert answered.done()
        await answered

    play(scene)


# -- decisions -----------------------------------------------------------------------------------------------


async def abort(stage: Stage) -> None:
    await stage.producer.end(committed=False)


async def time_out(stage: Stage) -> None:
    await asyncio.sleep(2 * TRANSACTION_TIMEOUT_MS / 1000)


async def fence(stage: Stage) -> None:
    await stage.producer.begin_life()


async def commit(stage: Stage) -> None:
    await stage.producer.end(committed=True)


@pytest.mark.parametrize(
    ("decide", "hold", "standing"),
    [
        (abort, BEGUN, Standing.OPEN),
        (time_out, BEGUN, Standing.OPEN),
        (fence, BEGUN, Standing.OPEN),
        (commit, DECIDED, Standing.PREPARED),
    ],
)
def test_no_participant_hears_of_a_decision_before_the_replicas_have_it(
    decide: Callable[[Stage], Coroutine[Any, Any, None]], hold: Hold, standing: Standing
) -> None:
    """A3: a new leader, who may not have it, decides otherwise."""

    async def scene(stage: Stage, replicas: Replicas) -> None:
        await open_in(stage.producer, "a-0")
        partition = stage.broker.hosted.find("a", 0)
        assert partition is not None
        (transaction,) = partition.state.undecided
        replicas.hold(hold)
        deciding = asyncio.ensure_future(decide(stage))
        await asyncio.wait([deciding], timeout=2 * TRANSACTION_TIMEOUT_MS / 1000)
        assert partition.standing(transaction) is standing
        replicas.hold()
        await deciding
        await asyncio.sleep(HELD_SECONDS)
        assert partition.standing(transaction) not in (standing, None)

    play(scene)


# -- checkpoints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", Place, ids=lambda place: place.name.lower())
def test_no_checkpoint_has_what_the_replicas_lack(place: Place) -> None:
    """A12: what another leader cuts must not be in a state that was stored."""

    def stored(stage: Stage) -> dict[bytes, bytes]:
        found = dict(stage.broker.store.scan("checkpoints", b""))
        return {key: value for key, value in found.items() if place_of(key) is place}

    async def scene(stage: Stage, replicas: Replicas) -> None:
        await stage.in_broker(stage.broker.checkpoint(all_changed=True))
        before = stored(stage)
        replicas.hold(Hold(place, Bound.DURABLE))
        work = (stage.producer.begin_life(), stage.send_plain("a-0"), commit_at_5(stage.remote))
        working = asyncio.gather(*work, configure(stage.second_remote, TOPIC, "a", "max.message.bytes"))
        await asyncio.sleep(AT_ONCE_SECONDS)
        saving = asyncio.ensure_future(stage.in_broker(stage.broker.checkpoint(all_changed=True)))
        await asyncio.sleep(HELD_SECONDS)
        assert stored(stage) == before
        replicas.hold()
        await asyncio.gather(working, saving)
        assert stored(stage) != before

    play(scene)


# -- missing replicas ----------------------------------------------------------------------------------------


def test_without_replicas_what_is_new_is_refused_and_reading_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking: list[NotEnoughReplicas] = []
    monkeypatch.setattr(NotShipped, "shortage", lambda self: lacking[0] if lacking else None)

    async def scene(stage: Stage, replicas: Replicas) -> None:
        await send(stage.plain, "a-0")
        replicas.hold(*EVERY_HOLD)
        waiting = asyncio.ensure_future(send(stage.plain, "a-0"))
        await asyncio.sleep(HELD_SECONDS)
        assert (await told(stage))[0] is None
        lacking.append(NotEnoughReplicas("the replica set lacks broker 3"))
        await asyncio.sleep(HELD_SECONDS)
        assert await told(stage) == (1, -1)
        assert len((await shown(stage))["messages"]) == 1
        refused = await stage.remote_of("another").ask(
            ApiKey.CREATE_TOPICS,
            5,
            {"topics": [a_topic("late")], "timeout_ms": 1_000, "validate_only": False},
        )
        assert [topic.error_code for topic in refused.topics] == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert not waiting.done()
        lacking.clear()
        replicas.hold()
        await waiting
        await asyncio.sleep(HELD_SECONDS)
        assert (await told(stage))[0] == 2

    play(scene)


def a_topic(name: str) -> dict[str, Any]:
    return {
        "name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [],
    }  # fmt: skip
