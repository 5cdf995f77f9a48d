"""The group coordinator as a client sees it: messages in, messages out, at every version of them."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.api.routes import FLEXIBLE_FROM, ROUTES, schema_of
from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.members import GroupLimits, HeldMemory
from faircopy.groups.offset_requests import METADATA_BYTES_MAX, sort_offsets
from faircopy.groups.offsets import CommittedOffset, Offsets
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.pace import NO_PACE
from faircopy.serving.route import Context, Route
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_header,
)
from tests.unit.groups.memory_offset_store import MemoryOffsetStore, NamedTopics, place
from tests.unit.groups.virtual_time import VirtualTime

OFFSET = {"committed_offset": 5, "committed_leader_epoch": 2}
JOIN: dict[str, Any] = {
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "member_id": "",
    "protocol_type": "consumer",
}


def subscription(*topics: str) -> bytes:
    """A consumer's metadata, as the classic protocol has it."""
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Broker:
    """A coordinator with virtual time, spoken to in Kafka's messages."""

    def __init__(self, **limits: int) -> None:
        self.numbers = itertools.count(1)
        self.time = VirtualTime()
        self.store = MemoryOffsetStore()
        self.held = HeldMemory()
        self.limits = GroupLimits(**{"initial_rebalance_delay_ms": 0, **limits})
        self.coordinator = self.coordinator_of(self.store)

    def coordinator_of(self, store: MemoryOffsetStore) -> GroupCoordinator:
        """A coordinator of these groups, as each start of a broker makes one."""
        return GroupCoordinator(
            self.limits,
            self.held,
            store,
            self.time.call_later,
            self.time.now_ms,
            fresh_id=lambda: f"fresh{next(self.numbers)}",
            steady_ms=self.time.now_ms,
            topic_ids=NamedTopics(),
        )

    async def ask(self, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
        """Send a request over the wire codec, and read the answer as a client would."""
        request = self.request(api_key, version, body)
        answer = await self.handler(api_key, version)(request)
        framed = encode_response(schema_of(api_key), version, 1, answer)
        return decode_response(schema_of(api_key), version, memoryview(framed)[4:])[1]

    def request(self, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
        frame = memoryview(encode_request(schema_of(api_key), version, 1, "me", body))[4:]
        return decode_request(
            schema_of(api_key), version, frame, read_request_header(frame, FLEXIBLE_FROM).body_at
        )

    def handler(self, api_key: ApiKey, version: int) -> Callable[[Message], Awaitable[dict[str, Any]]]:
        if api_key == ApiKey.JOIN_GROUP:
            return lambda request: self.coordinator.join_group(request, version, "me", "/10.0.0.1")
        route = ROUTES[api_key]
        assert isinstance(route, Route)
        context = cast(
            Context, SimpleNamespace(version=version, pace=NO_PACE, parts=SimpleNamespace(shards=self))
        )
        return lambda request: route.handle(request, context)

    def groups_of(self, _group: str) -> GroupCoordinator:
        """All groups are in one shard."""
        return self.coordinator

    def __iter__(self) -> Iterator[Any]:
        return iter([SimpleNamespace(groups=self.coordinator)])

    async def join(self, version: int = 3, **changes: Any) -> Message:
        protocols = [{"name": "range", "metadata": subscription("t")}]
        return await self.ask(
            ApiKey.JOIN_GROUP, version, {"group_id": "g", "protocols": protocols, **JOIN, **changes}
        )

    async def sync(
        self, joined: Message, parts: Mapping[str, bytes] | None = None, version: int = 2
    ) -> Message:
        assignments = [{"member_id": m, "assignment": a} for m, a in (parts or {}).items()]
        named = {"generation_id": joined.generation_id, "member_id": joined.member_id}
        return await self.ask(
            ApiKey.SYNC_GROUP, version, {"group_id": "g", **named, "assignments": assignments}
        )

    async def stable(self) -> Message:
        """A group "g" of one member; returns the answer to its join."""
        joined = await self.join()
        await self.sync(joined, {joined.member_id: b"all"})
        return joined

    async def commit(self, version: int = 8, offset: int = 5, **changes: Any) -> int:
        """Commit an offset for t-0; returns the partition's error."""
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
        topics = changes.pop("topics", [{"name": "t", "partitions": [partition]}])
        body = {"group_id": "g", "member_id": "", "topics": topics, **changes}
        answer = await self.ask(ApiKey.OFFSET_COMMIT, version, body)
        error: int = answer.topics[0].partitions[0].error_code
        return error


def run(test: Callable[[Broker], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Make a test of an async function that wants a broker."""

    def wrapper() -> None:
        asyncio.run(test(Broker()))

    wrapper.__name__, wrapper.__doc__ = test.__name__, test.__doc__
    return wrapper


async def settled() -> None:
    """Let the tasks get as far as they can without time passing."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("version", range(1, 9))
def test_an_offset_that_may_be_older_than_an_acknowledged_one_is_not_told(version: int) -> None:
    """P8: a commit was acknowledged, and is held (by a damaged partition, say). Clients ask again."""

    async def test() -> None:
        broker = Broker()
        await broker.commit(offset=5)
        broker.store.is_settled = False
        asked = {"name": "t", "partition_indexes": [0]}
        group = {"group_id": "g", "topics": [asked]}
        answer = await broker.ask(
            ApiKey.OFFSET_FETCH, version, {"groups": [group]} if version == 8 else group
        )
        found = answer.groups[0] if version == 8 else answer
        partition = found.topics[0].partitions[0]
        assert (partition.committed_offset, partition.error_code) == (
            -1,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )
        assert version == 1 or found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    asyncio.run(test())


# -- members -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(8))
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


@pytest.mark.parametrize("version", range(8))
def test_a_refused_join_can_be_said_at_every_version(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        assert (await broker.join(version, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
        assert (await broker.join(version, member_id="x")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        refused = await broker.join(version, session_timeout_ms=1)
        assert (refused.error_code, refused.generation_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, -1)

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
async def test_an_empty_group_without_offsets_is_shown_until_it_is_deleted(broker: Broker) -> None:
    joined = await broker.stable()
    await broker.ask(ApiKey.LEAVE_GROUP, 1, {"group_id": "g", "member_id": joined.member_id})
    await settled()
    (listed,) = (await broker.ask(ApiKey.LIST_GROUPS, 4, {"states_filter": []})).groups
    assert (listed.group_id, listed.group_state, listed.protocol_type) == ("g", "Empty", "consumer")
    (described,) = (await broker.ask(ApiKey.DESCRIBE_GROUPS, 4, {"groups": ["g"]})).groups
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "consumer", [])
    deleted = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]})
    assert deleted.results[0].error_code == ErrorCode.NONE
    (described,) = (await broker.ask(ApiKey.DESCRIBE_GROUPS, 4, {"groups": ["g"]})).groups
    assert described.group_state == "Dead"
    assert (await broker.join()).generation_id == 1


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
    await asyncio.wait_for(joining, 10)


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


# -- offsets -------------------------------------------------------------------------------------------------


def fetched(answer: Message) -> dict[tuple[str, int], tuple[int, str, int]]:
    return {
        (t.name, p.partition_index): (p.committed_offset, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    }


ASKED = [{"name": "t", "partition_indexes": [0, 1]}]


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_are_committed_and_fetched(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        assert await broker.commit(min(version + 1, 8)) == ErrorCode.NONE
        answer = await broker.ask(ApiKey.OFFSET_FETCH, version, {"group_id": "g", "topics": ASKED})
        assert fetched(answer) == {("t", 0): (5, "m", 0), ("t", 1): (-1, "", 0)}
        assert answer.error_code == ErrorCode.NONE
        if version >= 2:
            answer = await broker.ask(ApiKey.OFFSET_FETCH, version, {"group_id": "g", "topics": None})
            assert fetched(answer) == {("t", 0): (5, "m", 0)}

    asyncio.run(test())


@run
async def test_offsets_of_many_groups_are_fetched_at_once(broker: Broker) -> None:
    await broker.commit()
    groups = [{"group_id": "g", "topics": None}, {"group_id": "none", "topics": ASKED}]
    answer = await broker.ask(ApiKey.OFFSET_FETCH, 8, {"groups": groups})
    assert [g.group_id for g in answer.groups] == ["g", "none"]
    assert fetched(answer.groups[0]) == {("t", 0): (5, "m", 0)}
    assert fetched(answer.groups[1]) == {("t", 0): (-1, "", 0), ("t", 1): (-1, "", 0)}
    assert (await broker.ask(ApiKey.OFFSET_FETCH, 8, {"groups": []})).groups == []


@run
async def test_unstable_offsets_are_told_to_whoever_asks_for_stable_ones(broker: Broker) -> None:
    await broker.commit()
    broker.store.pending["g"] = {place("t", 0), place("u", 3)}
    ask = {"group_id": "g", "topics": ASKED, "require_stable": True}
    answer = await broker.ask(ApiKey.OFFSET_FETCH, 7, ask)
    assert fetched(answer) == {("t", 0): (-1, "", 88), ("t", 1): (-1, "", 0)}
    answer = await broker.ask(ApiKey.OFFSET_FETCH, 7, {**ask, "topics": None})
    assert fetched(answer) == {("t", 0): (-1, "", 88), ("u", 3): (-1, "", 88)}
    answer = await broker.ask(ApiKey.OFFSET_FETCH, 7, {**ask, "require_stable": False})
    assert fetched(answer)["t", 0] == (5, "m", 0)


@run
async def test_commits_are_refused_partition_by_partition(broker: Broker) -> None:
    rows = [("t", 0, "ok"), ("t", 1, "x" * (METADATA_BYTES_MAX + 1)), ("missing", 0, ""), ("t", 10, None)]
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": p, "committed_offset": 1, "committed_metadata": metadata}],
        }
        for topic, p, metadata in rows
    ]
    body = {"group_id": "g", "member_id": "", "topics": topics}
    answer = await broker.ask(ApiKey.OFFSET_COMMIT, 8, body)
    assert [t.partitions[0].error_code for t in answer.topics] == [0, 12, 3, 3]
    assert list(broker.store.fetch("g")) == [place("t", 0)]


@run
async def test_only_members_commit_to_a_group_that_has_some(broker: Broker) -> None:
    joined = await broker.stable()
    assert await broker.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert await broker.commit(generation_id=9, member_id=joined.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert broker.store.fetch("g") == {}
    assert await broker.commit(generation_id=1, member_id=joined.member_id) == ErrorCode.NONE


@run
async def test_transactional_commits_are_checked_against_the_group(broker: Broker) -> None:
    joined = await broker.stable()
    body = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "topics": []}

    def check(version: int = 3, group_id: str = "g", **who: Any) -> ErrorCode:
        request = broker.request(ApiKey.TXN_OFFSET_COMMIT, version, {**body, "group_id": group_id, **who})
        return broker.coordinator.check_txn_offset_commit(request)

    assert check(0) == check(3) == check(3, "other") == ErrorCode.NONE
    assert check(generation_id=1, member_id=joined.member_id) == ErrorCode.NONE
    assert check(generation_id=0, member_id=joined.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert check(generation_id=1, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert check(3, "other", generation_id=1, member_id="x") == ErrorCode.ILLEGAL_GENERATION
    assert check(3, "") == ErrorCode.INVALID_GROUP_ID


@run
async def test_offsets_of_a_transaction_are_sorted_like_others(broker: Broker) -> None:
    topics = [
        {"name": "t", "partitions": [{"partition_index": 0, **OFFSET}, {"partition_index": 10, **OFFSET}]}
    ]
    body = {"transactional_id": "x", "group_id": "g", "producer_id": 1, "producer_epoch": 0, "topics": topics}
    request = broker.request(ApiKey.TXN_OFFSET_COMMIT, 3, body)
    offsets = await sort_offsets(request.topics, NamedTopics(), 1_000, NO_PACE)
    assert offsets.accepted == {place("t", 0): CommittedOffset(5, 2, "", 1_000)}
    answer = await offsets.answer(request.topics, ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_PACE)
    errors = [p["error_code"] for p in answer["topics"][0]["partitions"]]
    assert errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    encode_response(schema_of(ApiKey.TXN_OFFSET_COMMIT), 3, 1, answer)


@run
async def test_of_a_partition_that_is_named_twice_the_last_offset_counts(broker: Broker) -> None:
    partitions = [{"partition_index": 0, "committed_offset": offset} for offset in (7, 9)]
    assert await broker.commit(topics=[{"name": "t", "partitions": partitions}]) == ErrorCode.NONE
    assert broker.store.fetch("g")[place("t", 0)].offset == 9


@run
async def test_offsets_of_topics_that_nobody_reads_are_deleted(broker: Broker) -> None:
    await broker.commit()
    await broker.commit(topics=[{"name": "u", "partitions": [{"partition_index": 1, "committed_offset": 2}]}])
    await broker.stable()
    topics = [
        {"name": "t", "partitions": [{"partition_index": 0}]},
        {"name": "u", "partitions": [{"partition_index": 1}]},
    ]
    answer = await broker.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    assert [t.partitions[0].error_code for t in answer.topics] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert list(broker.store.fetch("g")) == [place("t", 0)]
    answer = await broker.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "none", "topics": topics})
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@run
async def test_offsets_of_busy_groups_that_are_no_consumers_stay(broker: Broker) -> None:
    await broker.commit()
    await broker.join(protocol_type="connect")
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    answer = await broker.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    assert answer.error_code == ErrorCode.NON_EMPTY_GROUP


@run
async def test_a_subscription_that_is_not_understood_may_be_to_anything(broker: Broker) -> None:
    await broker.commit()
    await broker.join(protocols=[{"name": "range", "metadata": b"?"}])
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    answer = await broker.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


# -- administration ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_groups_are_described(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        joined = await broker.stable()
        await broker.commit(group_id="offsets only")
        asked = {"groups": ["g", "offsets only", "nothing"]}
        answer = await broker.ask(ApiKey.DESCRIBE_GROUPS, version, asked)
        assert [g.group_state for g in answer.groups] == ["Stable", "Empty", "Dead"]
        assert {g.error_code for g in answer.groups} == {0}
        group = answer.groups[0]
        assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
        member = group.members[0]
        assert (member.member_id, member.client_id, member.client_host) == (
            joined.member_id,
            "me",
            "/10.0.0.1",
        )
        assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"all")

    asyncio.run(test())


@run
async def test_members_of_a_group_in_motion_are_described_without_what_they_read(broker: Broker) -> None:
    await broker.join()
    group = (await broker.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"]})).groups[0]
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert (group.members[0].member_metadata, group.members[0].member_assignment) == (b"", b"")


@run
async def test_groups_are_listed(broker: Broker) -> None:
    await broker.stable()
    await broker.commit(group_id="offsets only")

    async def listed(version: int, *states: str) -> list[tuple[str, str]]:
        answer = await broker.ask(ApiKey.LIST_GROUPS, version, {"states_filter": list(states)})
        return [(g.group_id, g.group_state) for g in answer.groups]

    assert await listed(4) == [("g", "Stable"), ("offsets only", "Empty")]
    assert await listed(0) == [("g", ""), ("offsets only", "")]
    assert await listed(4, "empty") == [("offsets only", "Empty")]
    assert await listed(4, "Dead", "Stable") == [("g", "Stable")]


@run
async def test_groups_without_members_are_deleted(broker: Broker) -> None:
    await broker.stable()
    await broker.commit(group_id="offsets only")
    names = ["g", "offsets only", "nothing", "offsets only"]
    answer = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": names})
    assert [r.error_code for r in answer.results] == [68, 0, 69, 69]
    assert broker.store.fetch("offsets only") == {}


class FullStore(MemoryOffsetStore):
    """What a store does while the disk is full."""

    async def commit(self, group_id: str, offsets: Offsets) -> None:
        raise JournalFull("no space is left")

    async def delete(self, group_id: str, partitions: AbstractSet[TopicIdPartition] | None) -> None:
        raise JournalFull("no space is left")


@run
async def test_on_a_full_disk_clients_are_told_to_come_back(broker: Broker) -> None:
    await broker.commit()
    broker.store.__class__ = FullStore
    assert await broker.commit() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]})
    assert answer.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    answer = await broker.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(broker.store.fetch("g")) == [place("t", 0)]


@run
async def test_a_group_of_ids_given_away_can_be_deleted(broker: Broker) -> None:
    told = await broker.join(5)
    answer = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]})
    assert answer.results[0].error_code == ErrorCode.NONE
    assert broker.time.pending == 0
    assert (await broker.join(5, member_id=told.member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
