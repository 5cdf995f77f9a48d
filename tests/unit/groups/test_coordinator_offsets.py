"""Offsets of a group as a client sees them: committed, checked and fetched, at every version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from faircopy.api.routes import schema_of
from faircopy.groups.offset_requests import METADATA_BYTES_MAX, sort_offsets
from faircopy.groups.offsets import CommittedOffset
from faircopy.loop.pace import NO_PACE
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import encode_response
from tests.unit.groups.coordinator_bench import Broker, run
from tests.unit.groups.memory_offset_store import NamedTopics, place

OFFSET = {"committed_offset": 5, "committed_leader_epoch": 2}
ASKED = [{"name": "t", "partition_indexes": [0, 1]}]


def fetched(answer: Message) -> dict[tuple[str, int], tuple[int, str, int]]:
    return {
        (t.name, p.partition_index): (p.committed_offset, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    }


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
