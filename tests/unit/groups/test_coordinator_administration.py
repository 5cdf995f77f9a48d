"""Groups as an administrator sees them: described, listed and deleted, or only some of their offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet

import pytest

from faircopy.groups.offsets import Offsets
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.coordinator_bench import Broker, run, settled, subscription
from tests.unit.groups.memory_offset_store import MemoryOffsetStore, place


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(version: int) -> None:
    async def test() -> None:
        broker = Broker()
        joined = await broker.stable()
        await broker.commit(group_id="offsets only")
        asked = {"groups": ["g", "offsets only", "nothing"]}
        answer = await broker.ask(ApiKey.DESCRIBE_GROUPS, version, asked)
        assert [g.group_state for g in answer.groups] == ["Stable", "Empty", "Dead"]
        missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
        assert [g.error_code for g in answer.groups] == [ErrorCode.NONE, ErrorCode.NONE, missing]
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
async def test_groups_without_members_are_deleted(broker: Broker) -> None:
    await broker.stable()
    await broker.commit(group_id="offsets only")
    names = ["g", "offsets only", "nothing", "offsets only"]
    answer = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": names})
    assert [r.error_code for r in answer.results] == [68, 0, 69], "each group once"
    assert broker.store.fetch("offsets only") == {}


@run
async def test_a_group_of_ids_given_away_can_be_deleted(broker: Broker) -> None:
    told = await broker.join(5)
    answer = await broker.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]})
    assert answer.results[0].error_code == ErrorCode.NONE
    assert broker.time.pending == 0
    assert (await broker.join(5, member_id=told.member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


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
