"""A topic that is deleted and recreated under the same name is another topic, and inherits nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from faircopy.settings.table import Settings
from faircopy.wire.api_keys import ApiKey
from tests.crash_states.stage import SETTINGS, TABLE, TABLES_SETTINGS, Stage
from tests.crash_states.sweep import in_a_world
from tests.simulation.complaints import Complaints, listening
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import DIRECTORY
from tests.simulation.tables import rows_of


def on_stage(scene: Callable[[Stage], Awaitable[None]], settings: Settings = SETTINGS, seed: int = 0) -> None:
    """Play a scene with a broker and clients, without faults. `seed` decides how long everything takes."""

    async def play(loop: VirtualLoop) -> None:
        complaints = Complaints()
        stage = Stage(loop, settings, random.Random(seed))
        with stage.machine, listening(complaints):
            await stage.begin()
            stage.machine.disk.before = lambda _: None
            await scene(stage)
        assert complaints.found == []

    in_a_world(play)


async def delete(stage: Stage, topic: str) -> None:
    answer = await stage.remote.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic], "timeout_ms": 10_000})
    assert answer.responses[0].error_code == 0


async def make_again(stage: Stage, topic: str, settings: dict[str, str] | None = None) -> None:
    await delete(stage, topic)
    await stage.make_topic(topic, 1, settings or {})


async def restart(stage: Stage) -> None:
    """Restart in order: what is open goes on."""
    await stage.machine.stop()
    await stage.machine.start()


def test_offsets_of_an_open_transaction_go_with_their_topic() -> None:
    async def scene(stage: Stage) -> None:
        await stage.make_topic("c", 1, {})
        await stage.producer.add_partitions(["a-0"])
        await stage.producer.send_offsets("readers", {"c-0": 5, "b-0": 7})
        await make_again(stage, "c")
        await restart(stage)
        await stage.producer.end(committed=True)
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        assert [await consumer.committed("readers", name) for name in ("c-0", "b-0")] == [-1, 7]
        await stage.in_broker(stage.broker.shards.forget_offsets_of_deleted())
        for partition in stage.broker.shards.offsets_partitions():
            assert [place.topic_id for place in partition.table.committed("readers")] == [
                stage.broker.hosted.topics["b"].topic.id.bytes
            ]

    on_stage(scene)


def test_drafts_of_an_open_transaction_go_with_their_topic() -> None:
    """The other drafts of the transaction are committed."""

    async def scene(stage: Stage) -> None:
        await stage.make_topic("c", 1, {})
        await stage.producer.add_partitions(["a-0", "c-0"])
        for name in ("a-0", "c-0"):
            await stage.producer.send(name, [1], 0)
        await make_again(stage, "c")
        await restart(stage)
        await stage.producer.end(committed=True)
        consumer = SimulatedConsumer(stage.remote, [], is_committed=True)
        assert [await consumer.bound(name, LATEST) for name in ("a-0", "c-0")] == [1, 0]
        described = await stage.remote.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["red/1"]})
        assert described.transaction_states[0].transaction_state == "CompleteCommit"

    on_stage(scene)


async def published(stage: Stage, table: str) -> list[int]:
    """The values of a plain table, once everything that can be published is."""
    await asyncio.sleep(5)
    return sorted(int(read.value) for read in rows_of(stage.machine.disk, DIRECTORY / "plain" / table))


def test_a_table_of_its_own_begins_anew() -> None:
    async def scene(stage: Stage) -> None:
        await stage.make_topic("c", 1, {})
        await stage.plain.send("c-0", [-1], 0)
        assert await published(stage, "c") == [-1]
        await make_again(stage, "c")
        await stage.plain.begin_life()
        for value in (-2, -3):  # more than its predecessor had
            await stage.plain.send("c-0", [value], 0)
        assert await published(stage, "c") == [-3, -2]

    on_stage(scene, TABLES_SETTINGS)


def test_a_shared_table_is_not_mixed() -> None:
    """The new topic is not published there, but elsewhere. Rows of the old one go, all others stay."""

    async def scene(stage: Stage) -> None:
        await stage.make_topic("c", 1, {"plain.table": TABLE})
        await stage.plain.send("c-0", [-1], 0)
        before = await published(stage, TABLE)
        assert before.pop(0) == -1
        await make_again(stage, "c", {"plain.table": TABLE})
        await stage.plain.begin_life()
        for name, value in (("c-0", -2), ("c-0", -3), ("a-0", 1_000)):
            await stage.plain.send(name, [value], 0)
        assert await published(stage, TABLE) == [*before, 1_000]
        await restart(stage)
        assert await published(stage, TABLE) == [*before, 1_000]
        resource = {
            "resource_type": 2,
            "resource_name": "c",
            "configs": [{"name": "plain.table", "value": "other"}],
        }
        answer = await stage.remote.ask(
            ApiKey.ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False}
        )
        assert answer.responses[0].error_code == 0
        assert await published(stage, "other") == [-3, -2]

    on_stage(scene, TABLES_SETTINGS)
