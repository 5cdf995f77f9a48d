"""Requests of administrators' tools that go beyond what most clients send."""

from __future__ import annotations

from typing import Any

import pytest

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.admin.asking import SET, TOPIC, ask, create, describe
from tests.broker_process import BrokerProcess

TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
NOT_ASKED = -(2**31)


# -- CreateTopics --------------------------------------------------------------------------------------------

ODD = {"no.such.setting": "1"}


@pytest.mark.parametrize(
    ("name", "configs", "fields", "code"),
    [
        ("there", ODD, {"num_partitions": 0, "replication_factor": 3}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("no/slash", ODD, {"num_partitions": 0}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("new", ODD, {"num_partitions": 0, "replication_factor": 3}, ErrorCode.INVALID_CONFIG),
        ("new", {}, {"num_partitions": 0, "replication_factor": 1}, ErrorCode.INVALID_PARTITIONS),
        ("new", {}, {"num_partitions": 1, "replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_what_is_wrong_with_a_topic_is_said_in_kafkas_order(
    broker: BrokerProcess, name: str, configs: dict[str, str], fields: dict[str, Any], code: ErrorCode
) -> None:
    """Connect makes its topics at each start, and relies on being told that they exist."""
    assert create(broker, name, configs, **fields).error_code == code


ALONE = [{"partition_index": 0, "broker_ids": [1]}]


@pytest.mark.parametrize(("partitions", "factor"), [(1, -1), (-1, 1), (1, 1)])
def test_assignments_come_without_numbers(broker: BrokerProcess, partitions: int, factor: int) -> None:
    numbers: dict[str, Any] = {"num_partitions": partitions, "replication_factor": factor}
    refused = create(broker, "assigned", assignments=ALONE, validate_only=True, **numbers)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    numbers = {"num_partitions": -1, "replication_factor": -1}
    assert create(broker, "assigned", assignments=ALONE, validate_only=True, **numbers).error_code == 0


# -- what is named more than once ----------------------------------------------------------------------------


def partitions_of(broker: BrokerProcess, *topics: str) -> list[int]:
    asked = {"topics": [{"name": topic} for topic in topics], "allow_auto_topic_creation": False}
    return [len(topic.partitions) for topic in ask(broker, ApiKey.METADATA, 9, asked).topics]


def test_a_topic_that_is_named_twice_is_not_created(broker: BrokerProcess) -> None:
    one = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    asked = [one | {"name": name} for name in ("made-twice", "made-once", "made-twice")]
    answer = ask(broker, ApiKey.CREATE_TOPICS, 7, {"topics": asked, "timeout_ms": 5_000})
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert codes == {"made-twice": ErrorCode.INVALID_REQUEST, "made-once": ErrorCode.NONE}
    assert len(answer.topics) == 2
    assert partitions_of(broker, "made-twice", "made-once") == [0, 1]


def test_a_topic_that_is_named_twice_does_not_grow(broker: BrokerProcess) -> None:
    create(broker, "grown-twice")
    create(broker, "grown-once")
    asked = [
        {"name": name, "count": count, "assignments": None}
        for name, count in (("grown-twice", 2), ("grown-once", 4), ("grown-twice", 3))
    ]
    answer = ask(broker, ApiKey.CREATE_PARTITIONS, 3, {"topics": asked, "timeout_ms": 5_000})
    codes = {result.name: result.error_code for result in answer.results}
    assert codes == {"grown-twice": ErrorCode.INVALID_REQUEST, "grown-once": ErrorCode.NONE}
    assert len(answer.results) == 2
    assert partitions_of(broker, "grown-twice", "grown-once") == [1, 4]


def test_a_topic_that_is_named_twice_is_not_deleted(broker: BrokerProcess) -> None:
    create(broker, "named")
    topic_id = create(broker, "identified").topic_id
    for names in (["named", "named"], ["named", "named", "unknown"]):
        answer = ask(broker, ApiKey.DELETE_TOPICS, 5, {"topic_names": names, "timeout_ms": 5_000})
        assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
        assert len(answer.responses) == len(set(names))
    by_both = [{"name": "identified"}, {"name": None, "topic_id": topic_id}]
    answer = ask(broker, ApiKey.DELETE_TOPICS, 6, {"topics": by_both, "timeout_ms": 5_000})
    assert [topic.error_code for topic in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert partitions_of(broker, "named", "identified") == [1, 1]


@pytest.mark.parametrize("api_key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize("times", [(2, 1), (1, 2)], ids=["resource", "setting"])
def test_what_is_named_twice_is_not_changed(
    broker: BrokerProcess, api_key: ApiKey, times: tuple[int, int]
) -> None:
    create(broker, "settled")
    operation = {"config_operation": SET} if api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS else {}
    change = {"name": "retention.ms", "value": "5000"} | operation
    resource = {"resource_type": TOPIC, "resource_name": "settled", "configs": [change] * times[1]}
    answer = ask(broker, api_key, 1, {"resources": [resource] * times[0], "validate_only": False})
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]
    named = "resource 'settled'" if times[0] > 1 else "setting 'retention.ms'"
    assert answer.responses[0].error_message == f"{named} is named 2 times: name it once"
    assert describe(broker, TOPIC, "settled")["retention.ms"].value == "604800000"


def test_a_group_that_is_named_twice_is_deleted_once(broker: BrokerProcess) -> None:
    place = {"partition_index": 0, "committed_offset": 0, "committed_metadata": None}
    commit = {"group_id": "gone", "member_id": "", "topics": [{"name": "there", "partitions": [place]}]}
    ask(broker, ApiKey.OFFSET_COMMIT, 8, commit)
    answer = ask(broker, ApiKey.DELETE_GROUPS, 2, {"groups_names": ["gone", "gone"]})
    assert [(each.group_id, each.error_code) for each in answer.results] == [("gone", ErrorCode.NONE)]


# -- ApiVersions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "-", "a b", ".1", "1.", "ä", "a\n", "a" * 1_000 + "!"])
@pytest.mark.parametrize("version", [3, 4])
def test_clients_say_in_words_what_they_are(broker: BrokerProcess, version: int, word: str) -> None:
    """KIP-511."""
    for fields, code in (
        ({"client_software_name": "a-1.b", "client_software_version": "7"}, ErrorCode.NONE),
        ({"client_software_name": word, "client_software_version": "7"}, ErrorCode.INVALID_REQUEST),
        ({"client_software_name": "a", "client_software_version": word}, ErrorCode.INVALID_REQUEST),
    ):
        answer = ask(broker, ApiKey.API_VERSIONS, version, fields)
        assert answer.error_code == code
        assert bool(answer.api_keys) == (code is ErrorCode.NONE)


# -- Metadata ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [10, 11, 12])
def test_topics_by_id(broker: BrokerProcess, version: int) -> None:
    """Java's client gives an empty name, others give none."""
    (there,) = ask(broker, ApiKey.METADATA, 12, {"topics": [{"name": "there"}]}).topics
    for name in ("", "something else") + ((None,) if version == 12 else ()):
        asked = {
            "topics": [{"name": name, "topic_id": there.topic_id}, {"name": name, "topic_id": b"\7" * 16}]
        }
        found, missing = ask(broker, ApiKey.METADATA, version, asked).topics
        assert (found.error_code, found.name, found.topic_id) == (0, "there", there.topic_id)
        assert (missing.error_code, missing.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, b"\7" * 16)
        assert not missing.name
    (nameless,) = ask(broker, ApiKey.METADATA, version, {"topics": [{"name": ""}]}).topics
    assert nameless.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# -- operations ----------------------------------------------------------------------------------------------


def test_without_an_authorizer_all_operations_are_authorized(broker: BrokerProcess) -> None:
    both = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    found = ask(broker, ApiKey.METADATA, 8, {"topics": [{"name": "there"}, {"name": "no/slash"}]} | both)
    assert found.cluster_authorized_operations == CLUSTER_OPERATIONS
    assert [topic.topic_authorized_operations for topic in found.topics] == [TOPIC_OPERATIONS, NOT_ASKED]
    group = {"groups": ["nobody"], "include_authorized_operations": True}
    (described,) = ask(broker, ApiKey.DESCRIBE_GROUPS, 5, group).groups
    assert described.authorized_operations == GROUP_OPERATIONS
    cluster = ask(broker, ApiKey.DESCRIBE_CLUSTER, 1, {"include_cluster_authorized_operations": True})
    assert cluster.cluster_authorized_operations == CLUSTER_OPERATIONS


def test_who_does_not_ask_is_told_no_operations(broker: BrokerProcess) -> None:
    found = ask(broker, ApiKey.METADATA, 8, {"topics": None})
    assert {topic.topic_authorized_operations for topic in found.topics} == {NOT_ASKED}
    assert found.cluster_authorized_operations == NOT_ASKED
    (described,) = ask(broker, ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["nobody"]}).groups
    assert described.authorized_operations == NOT_ASKED
    assert ask(broker, ApiKey.DESCRIBE_CLUSTER, 1, {}).cluster_authorized_operations == NOT_ASKED


# -- ListGroups, ListOffsets ---------------------------------------------------------------------------------


def test_groups_by_type(broker: BrokerProcess) -> None:
    place = {"partition_index": 0, "committed_offset": 0, "committed_metadata": None}
    commit = {"group_id": "typed", "member_id": "", "topics": [{"name": "there", "partitions": [place]}]}
    ask(broker, ApiKey.OFFSET_COMMIT, 8, commit)

    def listed(*types: str) -> list[tuple[str, str]]:
        answer = ask(broker, ApiKey.LIST_GROUPS, 5, {"states_filter": [], "types_filter": list(types)})
        assert answer.error_code == ErrorCode.NONE
        return [(group.group_id, group.group_type) for group in answer.groups]

    assert listed() == listed("classic") == listed("Consumer", "Classic") == [("typed", "classic")]
    assert listed("consumer") == listed("share") == []


@pytest.mark.parametrize("version", [1, 7, 8, 9, 10])
def test_offsets_by_what_kafka_calls_them(broker: BrokerProcess, version: int) -> None:
    records = build_batch([NewRecord(b"x", timestamp_ms=1_000), NewRecord(b"y", timestamp_ms=2_000)])
    topic = f"listed-{version}"
    create(broker, topic)
    partitions = [{"index": 0, "records": records}]
    body = {"acks": -1, "timeout_ms": 5_000, "topic_data": [{"name": topic, "partition_data": partitions}]}
    ask(broker, ApiKey.PRODUCE, 9, body)

    def offset(timestamp: int) -> tuple[int, int]:
        partition = {"partition_index": 0, "timestamp": timestamp}
        fields = {"topics": [{"name": topic, "partitions": [partition]}]} | (
            {"timeout_ms": 1_000} if version > 9 else {}
        )
        (found,) = ask(broker, ApiKey.LIST_OFFSETS, version, fields).topics[0].partitions
        return found.error_code, found.offset

    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert offset(-2) == (0, 0)
    assert offset(-1) == (0, 2)
    assert offset(-3) == ((0, 1) if version >= 7 else unsupported)
    assert offset(-4) == ((0, 0) if version >= 8 else unsupported)
    assert offset(-5) == ((0, -1) if version >= 9 else unsupported)
    assert offset(-6) == offset(-(2**63)) == unsupported
    assert offset(1_500) == (0, 1)
