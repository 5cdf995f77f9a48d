"""Members of joint groups and ordinary producers: their names never meet, and neither can harm the other."""

from __future__ import annotations

import random

import pytest

from faircopy.transactions.transaction import member_id
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.producer import Refused, SimulatedProducer
from tests.simulation.test_made_again import on_stage

FIRST_NAMES = 20


async def init(stage: Stage, transactional_id: str) -> tuple[int, int]:
    """Code and producer id of an InitProducerId."""
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    answer = await stage.remote.ask(
        ApiKey.INIT_PRODUCER_ID, 4, body | {"producer_id": -1, "producer_epoch": -1}
    )
    return answer.error_code, answer.producer_id


async def member(stage: Stage, key: int) -> SimulatedProducer:
    joined = await SimulatedProducer.join(stage.remote, random.Random(0), "loader", "run", key, "task")
    assert joined is not None
    return joined


async def commit(stage: Stage, key: int, *members: SimulatedProducer) -> None:
    await SimulatedProducer.end_joint(
        stage.remote, random.Random(0), "loader", "run", key, list(members), committed=True
    )


async def write(writer: SimulatedProducer, name: str, value: int) -> None:
    await writer.add_partitions([name])
    await writer.send(name, [value], 0)


async def messages(stage: Stage, name: str) -> int:
    return await SimulatedConsumer(stage.remote, [], is_committed=True).bound(name, LATEST)


def test_a_client_that_is_named_as_a_member_was_keeps_nobody_from_starting() -> None:
    """`loader/7` and the member with producer id 7: the journal had a JOIN that no start could fold."""

    async def scene(stage: Stage) -> None:
        _, last = await init(stage, "loader/probe")
        names = [f"loader/{last + FIRST_NAMES + number}" for number in range(FIRST_NAMES)]
        assert {(await init(stage, name))[0] for name in names} == {ErrorCode.NONE}
        for key in range(FIRST_NAMES):
            joined = await member(stage, key)
            await write(joined, "a-0", key)
            await commit(stage, key, joined)
        stage.machine.kill()
        await stage.machine.start()
        assert stage.machine.failures == []
        assert await messages(stage, "a-0") == FIRST_NAMES

    on_stage(scene)


def test_no_client_can_take_the_name_of_a_member() -> None:
    async def scene(stage: Stage) -> None:
        _, last = await init(stage, "loader/probe")
        for name in (
            member_id("loader", last + 2),
            member_id("nobody", 0),
            "loader/__member-",
            "/__member-1",
        ):
            assert (await init(stage, name))[0] == ErrorCode.INVALID_REQUEST, name
        for name in ("__member-7", "loader/x/__member-7", "loader/__members", "loader/__member"):
            assert (await init(stage, name))[0] == ErrorCode.NONE, name
        await write(await member(stage, 0), "a-0", 1)

    on_stage(scene)


def test_a_commit_that_names_who_was_left_behind_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        named, left = await member(stage, 0), await member(stage, 0)
        for each in (named, left):
            await write(each, "a-0", 1)
        await commit(stage, 0, named)
        for _ in range(2):
            await commit(stage, 0, named)
            for members in ((left,), (named, left)):
                with pytest.raises(Refused) as caught:
                    await commit(stage, 0, *members)
                assert caught.value.code is ErrorCode.INVALID_TXN_STATE
            stage.machine.kill()
            await stage.machine.start()
        assert await messages(stage, "a-0") == 1

    on_stage(scene)


def test_a_plain_batch_of_a_producer_with_an_open_transaction_is_refused() -> None:
    """It took the sequence of the next draft, which then counted as a duplicate: acked, and missing."""

    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(["a-0"])
        knows = stage.producer.snapshot()._replace(transactional_id=None)
        intruder = SimulatedProducer.restored(knows, stage.second_remote, random.Random(0))
        with pytest.raises(Refused) as caught:
            await intruder.send("a-0", [-1], 0)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
        await stage.producer.send("a-0", [1], 0)
        await stage.producer.end(committed=True)
        assert await messages(stage, "a-0") == 1

    on_stage(scene)
