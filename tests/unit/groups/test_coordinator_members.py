"""How members join a group, stay and leave, as a client sees it, at every version of the messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.coordinator_bench import JOIN, Broker, run, settled


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_at_every_version(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        joined = await broker.join(version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert joined.member_id == "me-fresh1"
            joined = await broker.join(version, member_id=joined.member_id)
        assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
        assert joined.leader == joined.member_id == joined.members[0].member_id
        assert (joined.protocol_name, joined.protocol_type) == ("range", "consumer" if version >= 7 else None)
        sync_version = min(version, 5)
        synced = await broker.sync(joined, {joined.member_id: b"part"}, sync_version)
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"part")

    asyncio.run(test())


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_can_be_said_at_every_version(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        assert (await broker.join(version, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
        assert (await broker.join(version, member_id="x")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        refused = await broker.join(version, session_timeout_ms=1)
        assert (refused.error_code, refused.generation_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, -1)

    asyncio.run(test())


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_leader_comes_back_at_every_version(version: int) -> None:
    """From version 9 on, it leads on without assigning anew."""

    async def test() -> None:
        broker = Broker()
        leader = await broker.join(version, group_instance_id="one")
        await broker.sync(leader, {leader.member_id: b"part"}, 5, group_instance_id="one")
        back = await broker.join(version, group_instance_id="one", **({"reason": "a"} if version > 7 else {}))
        assert (back.error_code, back.generation_id) == (ErrorCode.NONE, 1)
        leads_on = version >= 9
        assert back.skip_assignment is leads_on
        assert back.leader == (back if leads_on else leader).member_id
        assert [member.member_id for member in back.members] == [back.member_id] * leads_on
        synced = await broker.sync(back, {}, 5, group_instance_id="one")
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"part")

    asyncio.run(test())


@run
async def test_joins_wait_for_the_rebalance_and_sync_for_the_leader(broker: Broker) -> None:
    first = await broker.stable()
    second = asyncio.create_task(broker.join())
    await settled()
    assert not second.done()
    beat = {"group_id": "g", "generation_id": 1, "member_id": first.member_id}
    assert (await broker.ask(ApiKey.HEARTBEAT, 3, beat)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    leader = await broker.join(member_id=first.member_id)
    follower = await second
    waiting = asyncio.create_task(broker.sync(follower))
    await settled()
    assert not waiting.done()
    await broker.sync(leader, {leader.member_id: b"1", follower.member_id: b"2"})
    assert (await waiting).assignment == b"2"


@run
async def test_timers_answer_what_waits(broker: Broker) -> None:
    await broker.stable()
    second = asyncio.create_task(broker.join())
    await settled()
    broker.time.pass_ms(10_000)
    assert (await second).generation_id == 2


@run
async def test_no_timer_and_no_group_is_left_behind(broker: Broker) -> None:
    joined = await broker.stable()
    assert broker.time.pending == 1
    leave = {"group_id": "g", "member_id": joined.member_id}
    assert (await broker.ask(ApiKey.LEAVE_GROUP, 1, leave)).error_code == ErrorCode.NONE
    await settled()
    assert broker.time.pending == 0
    assert not broker.coordinator.is_active("g")
    assert (await broker.ask(ApiKey.LEAVE_GROUP, 1, leave)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@run
async def test_a_member_that_a_former_broker_knew_is_a_member(broker: Broker) -> None:
    joined = await broker.stable()
    broker.coordinator.close()
    again = Broker()
    again.store = broker.store
    again.coordinator = again.coordinator_of(again.store)
    again.coordinator.restore()
    beat = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    assert (await again.ask(ApiKey.HEARTBEAT, 3, beat)).error_code == ErrorCode.NONE
    assert (
        await again.commit(generation_id=joined.generation_id, member_id=joined.member_id) == ErrorCode.NONE
    )
    (described,) = (await again.ask(ApiKey.DESCRIBE_GROUPS, 4, {"groups": ["g"]})).groups
    assert described.group_state == "Stable"
    assert again.time.pending == 1
    again.time.pass_ms(JOIN["session_timeout_ms"])
    await settled()
    assert not again.coordinator.is_active("g")


@run
async def test_members_of_all_groups_together_say_only_so_much(_broker: Broker) -> None:
    broker = Broker(all_bytes_max=100_000)
    large: dict[str, Any] = {"protocols": [{"name": "range", "metadata": bytes(60_000)}]}
    first = await broker.join(**large)
    refused = await broker.join(group_id="other", **large)
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assigned = [{"member_id": first.member_id, "assignment": bytes(60_000)}]
    sync = {"group_id": "g", "generation_id": first.generation_id, "member_id": first.member_id}
    answer = await broker.ask(ApiKey.SYNC_GROUP, 2, {**sync, "assignments": assigned})
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    await broker.ask(ApiKey.LEAVE_GROUP, 1, {"group_id": "g", "member_id": first.member_id})
    assert (await broker.join(group_id="other", **large)).error_code == ErrorCode.NONE


@run
async def test_only_the_leader_may_send_much_with_a_sync(broker: Broker) -> None:
    joined = await broker.stable()
    sync = {"group_id": "g", "generation_id": joined.generation_id, "member_id": "somebody"}
    assigned = [{"member_id": joined.member_id, "assignment": bytes(100_000)}]
    answer = await broker.ask(ApiKey.SYNC_GROUP, 2, {**sync, "assignments": assigned})
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@run
async def test_what_a_client_said_goes_with_it_while_it_waits(_broker: Broker) -> None:
    broker = Broker(initial_rebalance_delay_ms=1_000)
    gone: list[Callable[[], None]] = []
    protocols = [{"name": "range", "metadata": bytes(60_000)}]
    request = broker.request(ApiKey.JOIN_GROUP, 3, {"group_id": "g", "protocols": protocols, **JOIN})
    joining = asyncio.ensure_future(broker.coordinator.join_group(request, 3, "me", "host", gone.append))
    await settled()
    assert broker.held.bytes > 60_000
    gone[0]()
    assert broker.held.bytes == 0
    broker.time.pass_ms(1_000)
    assert not broker.coordinator.is_active("g")
    await joining


@run
async def test_a_client_that_goes_away_while_it_waits_does_no_harm(broker: Broker) -> None:
    first = await broker.stable()
    second = asyncio.create_task(broker.join())
    await settled()
    second.cancel()
    await settled()
    leader = asyncio.create_task(broker.join(member_id=first.member_id))
    await settled()
    assert len((await leader).members) == 2
    broker.time.pass_ms(200_000)
    assert broker.time.pending == 0


@run
async def test_closing_lets_nobody_wait(broker: Broker) -> None:
    await broker.stable()
    second = asyncio.create_task(broker.join())
    await settled()
    broker.coordinator.close()
    assert (await second).error_code == ErrorCode.NOT_COORDINATOR
    assert (await broker.join()).error_code == ErrorCode.NOT_COORDINATOR
    assert broker.time.pending == 0
    assert (broker.held.bytes, broker.held.groups) == (0, 0)


@run
async def test_many_members_leave_at_once(broker: Broker) -> None:
    joined = await broker.join(5, group_instance_id="static")
    members = [
        {"member_id": "", "group_instance_id": "static"},
        {"member_id": "", "group_instance_id": "static"},
        {"member_id": joined.member_id, "group_instance_id": None},
    ]
    left = await broker.ask(ApiKey.LEAVE_GROUP, 4, {"group_id": "g", "members": members})
    assert left.error_code == ErrorCode.NONE
    assert [m.error_code for m in left.members] == [0, 25, 25]
    assert [m.group_instance_id for m in left.members] == ["static", "static", None]


@run
async def test_groups_without_a_name_are_refused(broker: Broker) -> None:
    nobody = {"group_id": "", "generation_id": 1, "member_id": ""}
    for api_key, body in (
        (ApiKey.HEARTBEAT, nobody),
        (ApiKey.SYNC_GROUP, {**nobody, "assignments": []}),
        (ApiKey.LEAVE_GROUP, {"group_id": "", "members": [{"member_id": "x"}]}),
    ):
        assert (await broker.ask(api_key, 3, body)).error_code == ErrorCode.INVALID_GROUP_ID


@run
async def test_members_of_forgotten_groups_are_told_to_join_anew(broker: Broker) -> None:
    stranger = {"group_id": "g", "generation_id": 3, "member_id": "x"}
    assert (await broker.ask(ApiKey.HEARTBEAT, 0, stranger)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    synced = await broker.ask(ApiKey.SYNC_GROUP, 5, {**stranger, "assignments": []})
    assert synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert await broker.commit(generation_id=3, member_id="x") == ErrorCode.ILLEGAL_GENERATION
