"""faircopy.client with a real broker, which is killed now and then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any
from unittest import mock

import pytest

from faircopy.client import (
    BlockingClient,
    Client,
    Fenced,
    JointMember,
    OutcomeUnknown,
    RequestFailed,
    TransactionAborted,
)
from tests.broker_process import BrokerProcess, eventually
from tests.joint.asking import TOPIC
from tests.power_loss import lose_power

Seen = Callable[[], list[bytes]]
Scenario = Callable[[BrokerProcess, Seen], Awaitable[None]]


def asynchronous(scenario: Scenario) -> Callable[[BrokerProcess, Seen], None]:
    """A test that runs on an event loop."""

    @wraps(scenario)
    def test(own_broker: BrokerProcess, seen: Seen) -> None:
        asyncio.run(asyncio.wait_for(scenario(own_broker, seen), 240))

    return test


async def join(client: Client, run: str, key: int, member: str = "task") -> JointMember:
    joined = await client.join("job", run=run, key=key, member=member)
    assert joined is not None
    return joined


@asynchronous
async def test_members_write_and_one_decides(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client, Client(own_broker.address) as driver:
        members = [await join(client, "r", 5, str(number)) for number in range(3)]
        for number, member in enumerate(members):
            for record in range(100):
                await member.send(TOPIC, b"%d %d" % (number, record), key=b"%d" % record)
            await member.flush()
        assert seen() == []
        await driver.commit("job", run="r", key=5, members=[member.producer_id for member in members])
        assert len(set(seen())) == len(seen()) == 300
        assert await client.join("job", run="r", key=5, member="late") is None
        await driver.commit("job", run="r", key=5, members=[])
        with pytest.raises(RequestFailed, match="comes too late"):
            await driver.commit("job", run="r", key=4, members=[])


@asynchronous
async def test_a_former_run_is_fenced(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client:
        zombie = await join(client, "old", 0)
        await zombie.send(TOPIC, b"zombie")
        await zombie.flush()
        successor = await join(client, "new", 0)
        with pytest.raises(Fenced, match="has taken over"):
            await client.commit("job", run="old", key=0, members=[zombie])
        with pytest.raises(Fenced):
            await client.join("job", run="old", key=0, member="task")
        await successor.send(TOPIC, b"successor")
        await client.commit("job", run="new", key=0, members=[successor])
        assert seen() == [b"successor"]


@asynchronous
async def test_an_abort_discards(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client:
        member = await join(client, "r", 0)
        await member.send(TOPIC, b"aborted")
        await member.flush()
        await client.abort("job", run="r", key=0)
        with pytest.raises(TransactionAborted):
            await client.commit("job", run="r", key=0, members=[member])
        await client.commit("job", run="r", key=0, members=[])
        with pytest.raises(TransactionAborted, match="committed already"):
            await client.abort("job", run="r", key=0)
        await client.forget("job")
        assert await client.join("job", run="r", key=0, member="anew") is not None
        assert seen() == []


@asynchronous
async def test_one_process_has_many_transactions_open(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client:
        opened = [await client.begin() for _ in range(20)]
        for number, transaction in enumerate(opened):
            await transaction.send(TOPIC, b"%d" % number)
        for number, transaction in enumerate(opened):
            await (transaction.commit() if number % 2 else transaction.abort())
        async with await client.begin() as again:
            await again.send(TOPIC, b"again", partition=0)
        with pytest.raises(ZeroDivisionError):
            async with await client.begin() as failing:
                await failing.send(TOPIC, b"failing")
                raise ZeroDivisionError
        expected = [*(b"%d" % number for number in range(1, 20, 2)), b"again"]
        assert sorted(seen()) == sorted(expected)


@asynchronous
async def test_a_kill_between_writing_and_committing_is_not_noticed(
    own_broker: BrokerProcess, seen: Seen
) -> None:
    async with Client(own_broker.address) as client:
        member = await join(client, "r", 0)
        await member.send(TOPIC, b"before")
        await member.flush()
        await asyncio.to_thread(own_broker.restart)
        await member.send(TOPIC, b"after")
        await client.commit("job", run="r", key=0, members=[member])
        assert sorted(seen()) == [b"after", b"before"]


@asynchronous
async def test_a_loss_of_power_between_writing_and_committing_aborts(
    own_broker: BrokerProcess, seen: Seen
) -> None:
    async with Client(own_broker.address) as client:
        member = await join(client, "r", 0)
        await member.send(TOPIC, b"lost")
        await member.flush()
        await asyncio.to_thread(lose_power, own_broker)
        with pytest.raises(TransactionAborted, match="write it again"):
            await client.commit("job", run="r", key=0, members=[member])
        again = await join(client, "r", 0)
        await again.send(TOPIC, b"again")
        await client.commit("job", run="r", key=0, members=[again])
        await asyncio.to_thread(own_broker.restart)
        assert await client.join("job", run="r", key=0, member="task") is None
        await client.commit("job", run="r", key=0, members=[again])
        assert seen() == [b"again"]


@asynchronous
async def test_with_durable_acks_members_outlive_a_loss_of_power(
    own_broker: BrokerProcess, seen: Seen
) -> None:
    own_broker.settings = (*own_broker.settings, "transactional.ack=durable")
    await asyncio.to_thread(own_broker.restart)
    async with Client(own_broker.address) as client:
        first, second = await join(client, "r", 0), await join(client, "r", 0)
        await first.send(TOPIC, b"before")
        await first.flush()
        await asyncio.to_thread(lose_power, own_broker)
        await first.send(TOPIC, b"after")
        await second.send(TOPIC, b"of the other")
        await client.commit("job", run="r", key=0, members=[first, second])
        aborted = await join(client, "r", 1)
        await aborted.send(TOPIC, b"aborted")
        await aborted.flush()
        await client.abort("job", run="r", key=1)
        await asyncio.to_thread(lose_power, own_broker)
        with pytest.raises(TransactionAborted):
            await client.commit("job", run="r", key=1, members=[aborted])
        assert sorted(seen()) == [b"after", b"before", b"of the other"]


@contextlib.asynccontextmanager
async def refused_connection() -> AsyncIterator[None]:
    """Go on, after the block, when a connection was refused."""
    connect, refused = asyncio.open_connection, asyncio.Event()

    async def noted(*arguments: Any) -> Any:
        try:
            return await connect(*arguments)
        except OSError:
            refused.set()
            raise

    with mock.patch.object(asyncio, "open_connection", noted):
        yield
        await refused.wait()


@asynchronous
async def test_calls_wait_for_a_broker_that_comes_back(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client:
        own_broker.kill()
        async with refused_connection():
            joining = asyncio.create_task(join(client, "r", 0))
        await asyncio.to_thread(own_broker.start)
        member = await joining
        await member.send(TOPIC, b"value")
        await client.commit("job", run="r", key=0, members=[member])
        assert seen() == [b"value"]


@asynchronous
async def test_without_a_broker_the_outcome_is_unknown(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address, timeout_seconds=2) as client:
        own_broker.kill()
        with pytest.raises(OutcomeUnknown, match="Connection refused"):
            await client.commit("job", run="r", key=0, members=[])


@asynchronous
async def test_refusals_say_what_and_where(own_broker: BrokerProcess, seen: Seen) -> None:
    async with Client(own_broker.address) as client:
        member = await join(client, "r", 0)
        with pytest.raises(RequestFailed, match=r"writing to joint-1.*MESSAGE_TOO_LARGE"):
            await member.send(TOPIC, bytes(8 << 20), partition=1)
            await member.flush()
        with pytest.raises(RequestFailed, match="MESSAGE_TOO_LARGE"):
            await member.send(TOPIC, b"small")
        with pytest.raises(RequestFailed, match="MESSAGE_TOO_LARGE"):
            await client.commit("job", run="r", key=0, members=[member])
        assert seen() == []


def test_forgetting_soon_does_not_wait(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        member = client.join("job", run="r", key=0, member="task")
        assert member is not None
        member.send(TOPIC, b"remembered")
        member.flush()
        client.commit("job", run="r", key=0, members=[member])
        assert client.join("job", run="r", key=0, member="task") is None
        client.forget_soon("job")
        eventually(lambda: client.join("job", run="r", key=0, member="anew"))
        own_broker.kill()
        client.forget_soon("job")  # there is nobody to forget it, and closing does not wait for somebody


def test_the_blocking_client_does_the_same(own_broker: BrokerProcess, seen: Seen) -> None:
    with BlockingClient([own_broker.address]) as client:
        member = client.join("job", run="r", key=0, member="task")
        assert member is not None
        assert member.partitions_of(TOPIC) == 3
        member.send(TOPIC, b"joint", headers=[("name", b"value")])
        member.flush()
        with client.begin() as transaction:
            transaction.send(TOPIC, b"alone")
        assert seen() == [b"alone"]
        client.commit("job", run="r", key=0, members=[member])
        assert client.join("job", run="r", key=0, member="task") is None
        dropped = client.begin()
        dropped.send(TOPIC, b"dropped")
        dropped.abort()
    assert sorted(seen()) == [b"alone", b"joint"]
