"""What consoles and tools ask of a cluster, whose only broker has little to tell: it tells what is true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faircopy.catalogue.journal import catalogue_directory
from faircopy.verify.journal_entries import open_to_show, shown_entries
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from tests.admin.asking import BROKER, TOPIC, ask, create
from tests.broker_process import BrokerProcess

TOPICS = {"one": 1, "some": 5, "more": 3}
HERE, ELSEWHERE = 1, 9


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with three topics."""
    with BrokerProcess(tmp_path_factory.mktemp("alone")) as process:
        for name, partitions in TOPICS.items():
            assert create(process, name, num_partitions=partitions).error_code == ErrorCode.NONE
        yield process
        process.ensure_no_traceback()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_there_are_no_acls(broker: BrokerProcess, version: int) -> None:
    any_kind, everything = 1, dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    body = {"resource_type_filter": any_kind, "operation": any_kind, "permission_type": any_kind}
    answer = ask(broker, ApiKey.DESCRIBE_ACLS, version, body | everything)
    assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, [])


@pytest.mark.parametrize("version", [0, 1])
def test_there_are_no_quotas(broker: BrokerProcess, version: int) -> None:
    answer = ask(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, version, {"components": [], "strict": False})
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_leader_has_to_be_elected(broker: BrokerProcess, version: int) -> None:
    asked = [{"topic": "some", "partitions": [0, 5]}, {"topic": "none", "partitions": [0]}]
    answer = ask(broker, ApiKey.ELECT_LEADERS, version, {"topic_partitions": asked})
    assert answer.error_code == ErrorCode.NONE
    assert [
        (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
        for topic in answer.replica_election_results
    ] == [
        ("some", [(0, ErrorCode.ELECTION_NOT_NEEDED), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("none", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]
    of_all = ask(broker, ApiKey.ELECT_LEADERS, version, {"topic_partitions": None})
    assert (of_all.error_code, of_all.replica_election_results) == (ErrorCode.NONE, [])


def test_nothing_is_reassigned(broker: BrokerProcess) -> None:
    for asked in (None, [{"name": "some", "partition_indexes": [0]}]):
        answer = ask(broker, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": asked})
        assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_can_only_stay_where_it_is(broker: BrokerProcess, version: int) -> None:
    cases = {
        (0, (HERE,)): ErrorCode.NONE,
        (1, (ELSEWHERE,)): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (2, (HERE, ELSEWHERE)): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (3, ()): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (4, None): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        (5, (HERE,)): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    partitions = [
        {"partition_index": number, "replicas": None if replicas is None else list(replicas)}
        for number, replicas in cases
    ]
    body = {"topics": [{"name": "some", "partitions": partitions}]}
    answer = ask(broker, ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, body)
    assert answer.error_code == ErrorCode.NONE
    rows = answer.responses[0].partitions
    assert [row.error_code for row in rows] == list(cases.values())
    assert [bool(row.error_message) for row in rows] == [code != ErrorCode.NONE for code in cases.values()]


def test_topics_and_this_broker_have_settings(broker: BrokerProcess) -> None:
    def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
        answer = ask(broker, ApiKey.LIST_CONFIG_RESOURCES, version, {"resource_types": list(kinds)})
        assert answer.error_code == ErrorCode.NONE
        return sorted((each.resource_type, each.resource_name) for each in answer.config_resources)

    topics = sorted((TOPIC, name) for name in TOPICS)
    assert listed(1) == [*topics, (BROKER, str(HERE))]
    assert listed(1, TOPIC) == topics
    assert listed(1, BROKER) == [(BROKER, str(HERE))]
    clients_metrics, groups = 16, 32
    assert listed(0) == listed(1, clients_metrics) == listed(1, groups) == []
    refused = ask(broker, ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [TOPIC, 99]})
    assert (refused.error_code, refused.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_this_broker_keeps_the_metadata(broker: BrokerProcess, version: int) -> None:
    asked = [
        {"topic_name": name, "partitions": [{"partition_index": 0}]} for name in ("__cluster_metadata", "one")
    ]
    answer = ask(broker, ApiKey.DESCRIBE_QUORUM, version, {"topics": asked})
    known, unknown = (topic.partitions[0] for topic in answer.topics)
    assert (known.error_code, known.leader_id, known.leader_epoch) == (ErrorCode.NONE, HERE, 1)
    (voter,) = known.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (HERE, catalogue_end(broker))
    assert known.high_watermark == voter.log_end_offset > 0
    assert unknown.high_watermark == -1
    assert (unknown.error_code, unknown.current_voters) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    if version == 2:
        (listener,) = answer.nodes[0].listeners
        assert (answer.nodes[0].node_id, f"{listener.host}:{listener.port}") == (HERE, broker.address)


def catalogue_end(broker: BrokerProcess) -> int:
    """Where the catalogue's journal ends on disk."""
    shown = shown_entries(open_to_show(catalogue_directory(broker.data_directory / "journal")))
    return list(shown)[-1].entry.end


def test_the_metadata_grows_with_each_topic(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "plain.enabled=false") as broker:
        for name in TOPICS:
            before = high_watermark(broker)
            assert create(broker, name).error_code == ErrorCode.NONE
            assert high_watermark(broker) == catalogue_end(broker) > before


def high_watermark(broker: BrokerProcess) -> int:
    """That of the metadata."""
    asked = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    answer = ask(broker, ApiKey.DESCRIBE_QUORUM, 2, {"topics": asked})
    return int(answer.topics[0].partitions[0].high_watermark)


# -- DescribeTopicPartitions ---------------------------------------------------------------------------------


def described(
    broker: BrokerProcess, *names: str, limit: int = 2_000, cursor: dict[str, Any] | None = None
) -> Message:
    body = {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": cursor}
    return ask(broker, ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, body)


def rows_of(answer: Message) -> list[tuple[str, int]]:
    return [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]


EVERY = [(name, number) for name in sorted(TOPICS) for number in range(TOPICS[name])]


def test_topics_are_described_in_the_order_of_their_names(broker: BrokerProcess) -> None:
    answer = described(broker)
    assert (rows_of(answer), answer.next_cursor) == (EVERY, None)
    first = answer.topics[0]
    assert (first.name, first.error_code, first.is_internal) == ("more", ErrorCode.NONE, False)
    assert first.topic_id != bytes(16)
    partition = first.partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (HERE, [HERE], [HERE])
    assert partition.eligible_leader_replicas == partition.offline_replicas == []
    assert rows_of(described(broker, "some", "one", "some")) == [
        each for each in EVERY if each[0] in ("some", "one")
    ]


@pytest.mark.parametrize("limit", range(1, 11))
def test_pages_have_all_partitions_once(broker: BrokerProcess, limit: int) -> None:
    found: list[tuple[str, int]] = []
    cursor = None
    while not found or cursor is not None:
        answer = described(broker, limit=limit, cursor=cursor)
        assert 0 < len(rows_of(answer)) <= limit
        found += rows_of(answer)
        cursor = answer.next_cursor and answer.next_cursor.as_dict()
    assert found == EVERY


def test_a_page_goes_on_where_a_topic_has_gone(broker: BrokerProcess) -> None:
    gone = {"topic_name": "n", "partition_index": 7}
    assert rows_of(described(broker, cursor=gone)) == [each for each in EVERY if each[0] > "n"]
    beyond = {"topic_name": "more", "partition_index": 99}
    assert rows_of(described(broker, cursor=beyond)) == [each for each in EVERY if each[0] > "more"]


def test_topics_that_are_not_there_are_told(broker: BrokerProcess) -> None:
    answer = described(broker, "absent", "no/name", "one")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("one", ErrorCode.NONE),
    ]


def test_a_page_that_can_not_be_is_refused(broker: BrokerProcess) -> None:
    begin = {"topic_name": "one", "partition_index": 0}
    for answer in (
        described(broker, "some", cursor=begin),
        described(broker, "one", cursor=begin | {"partition_index": -1}),
        described(broker, "one", limit=0),
        described(broker, limit=-1),
    ):
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
        assert answer.next_cursor is None
