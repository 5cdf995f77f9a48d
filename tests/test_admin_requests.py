"""Requests of administrators' tools that go beyond what most clients send."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.routes import schema_of
from faircopy.client.connection import BrokerConnection
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_request
from faircopy.wire.records import NewRecord, build_batch
from tests.broker_process import BrokerProcess

TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
NOT_ASKED = -(2**31)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("admin")
    with BrokerProcess(directory, "plain.enabled=false") as process:
        assert create(process, "there").error_code == ErrorCode.NONE
        yield process


def ask(broker: BrokerProcess, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
    with BrokerConnection(broker.address) as connection:
        return connection.ask(schema_of(api_key), version, body)


def create(
    broker: BrokerProcess,
    name: str,
    configs: dict[str, str] | None = None,
    *,
    validate_only: bool = False,
    **fields: Any,
) -> Message:
    asked: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": []}
    asked["configs"] = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    body = {"topics": [asked | fields], "timeout_ms": 5_000, "validate_only": validate_only}
    answer: Message = ask(broker, ApiKey.CREATE_TOPICS, 7, body).topics[0]
    return answer


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


# -- versions that were not offered --------------------------------------------------------------------------


def send(broker: BrokerProcess, frame: bytes) -> bytes:
    """What comes back; nothing if the connection is closed."""
    host, port = broker.address.split(":")
    with socket.create_connection((host, int(port)), 10) as client, client.makefile("rb") as answers:
        client.sendall(frame)
        size = answers.read(4)
        return answers.read(struct.unpack(">i", size)[0]) if size else b""


@pytest.mark.parametrize("version", [13, 17, 18, 30])
def test_a_fetch_that_is_too_new_is_told_so(broker: BrokerProcess, version: int) -> None:
    """Kafka's own ReplicaVerificationTool sends the newest version without asking."""
    frame = bytearray(encode_request(FETCH, 12, 7, "tool", {"max_wait_ms": 0, "min_bytes": 0, "topics": []}))
    struct.pack_into(">h", frame, 6, version)
    correlation_id, answer = decode_response(FETCH, 12, memoryview(send(broker, bytes(frame))))
    assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert answer.responses == []


@pytest.mark.parametrize(
    ("api_key", "version"), [(ApiKey.PRODUCE, 13), (ApiKey.METADATA, 99), (ApiKey.FETCH, 3)]
)
def test_other_versions_close_the_connection(broker: BrokerProcess, api_key: ApiKey, version: int) -> None:
    """As Kafka does: there is no answer that such a client is sure to understand."""
    frame = struct.pack(">hhih", api_key, version, 1, -1) + bytes(8)
    assert send(broker, struct.pack(">i", len(frame)) + frame) == b""


# -- settings of topics --------------------------------------------------------------------------------------

# All settings of Kafka's topics, most with a value that is not the default.
KAFKAS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "6",
    "compression.lz4.level": "12",
    "compression.type": "zstd",
    "compression.zstd.level": "-5",
    "delete.retention.ms": "100",
    "file.delete.delay.ms": "1000",
    "flush.messages": "1",
    "flush.ms": "1000",
    "follower.replication.throttled.replicas": "*",
    "index.interval.bytes": "0",
    "leader.replication.throttled.replicas": "0:1,1:1",
    "local.retention.bytes": "-2",
    "local.retention.ms": "1000",
    "max.compaction.lag.ms": "1000",
    "max.message.bytes": "2000000",
    "message.downconversion.enable": "false",
    "message.format.version": "2.8",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "3600000",
    "message.timestamp.difference.max.ms": "3600000",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "1000",
    "min.insync.replicas": "2",
    "preallocate": "TRUE",
    "remote.copy.lag.bytes": "-1",
    "remote.copy.lag.ms": "5",
    "remote.log.copy.disable": "true",
    "remote.log.delete.on.disable": "true",
    "remote.storage.enable": "false",
    "retention.bytes": "1000000000",
    "retention.ms": "100000",
    "segment.bytes": "1048576",
    "segment.index.bytes": "1000000",
    "segment.jitter.ms": "10",
    "segment.ms": "60000",
    "unclean.leader.election.enable": "true",
}
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(broker: BrokerProcess, kind: int, name: str) -> dict[str, Message]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = ask(broker, ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource], "include_documentation": True})
    assert answer.results[0].error_code == ErrorCode.NONE
    return {config.name: config for config in answer.results[0].configs}


def alter(
    broker: BrokerProcess,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    validate_only: bool = False,
) -> ErrorCode:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    body = {"resources": [resource], "validate_only": validate_only}
    return ErrorCode(ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).responses[0].error_code)


def test_every_setting_that_kafka_knows_is_taken_kept_and_shown(broker: BrokerProcess) -> None:
    made = create(broker, "full", KAFKAS)
    assert made.error_code == ErrorCode.NONE, made.error_message
    shown = describe(broker, TOPIC, "full")
    assert {name: shown[name].value for name in KAFKAS} == KAFKAS
    assert {shown[name].config_source for name in KAFKAS} == {1}
    assert all(config.documentation for config in shown.values())
    assert {config.config_type for config in shown.values()} == {1, 2, 3, 5, 6, 7}
    defaults = describe(broker, TOPIC, "there")
    assert {config.config_source for config in defaults.values()} == {5, 4}, (
        "plain.enabled is off by the command line"
    )
    for name, config in defaults.items():
        checked = create(broker, "valid", {name: config.value}, validate_only=True)
        assert checked.error_code == ErrorCode.NONE, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.type", "brotli"),
        ("compression.zstd.level", "23"),
        ("flush.messages", "0"),
        ("leader.replication.throttled.replicas", "0:1,"),
        ("max.compaction.lag.ms", "0"),
        ("max.message.bytes", "2147483648"),
        ("message.timestamp.before.max.ms", "-1"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.insync.replicas", "0"),
        ("preallocate", "yes"),
        ("remote.storage.enable", "true"),
        ("segment.ms", "0"),
        ("segment.ms", "soon"),
        ("segment.ms", "9223372036854775808"),
    ],
)
def test_values_that_kafka_refuses_or_that_contradict_are_refused(
    broker: BrokerProcess, name: str, value: str
) -> None:
    refused = create(broker, "never", {name: value})
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert name in refused.error_message


def test_settings_that_contradict_each_other_are_refused(broker: BrokerProcess) -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}
    assert create(broker, "never", lags).error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("setting", ["message.timestamp.{}.max.ms", "message.timestamp.difference.max.ms"])
def test_times_far_from_the_clock_are_refused_if_the_topic_says_so(
    broker: BrokerProcess, setting: str
) -> None:
    now_ms, hour_ms = int(time.time() * 1000), 3_600_000

    def produce(topic: str, *times_ms: int) -> ErrorCode:
        records = build_batch([NewRecord(b"x", timestamp_ms=time_ms) for time_ms in times_ms])
        partitions = [{"index": 0, "records": records}]
        body = {
            "acks": -1,
            "timeout_ms": 5_000,
            "topic_data": [{"name": topic, "partition_data": partitions}],
        }
        return ErrorCode(ask(broker, ApiKey.PRODUCE, 9, body).responses[0].partition_responses[0].error_code)

    for side, sign in (("before", -1), ("after", 1)):
        topic = f"timed-{side}-{len(setting)}"
        assert create(broker, topic, {setting.format(side): "60000"}).error_code == ErrorCode.NONE
        assert produce(topic, now_ms, now_ms + sign * 30_000) == ErrorCode.NONE
        assert produce(topic, now_ms + sign * hour_ms, now_ms) == ErrorCode.INVALID_TIMESTAMP
        assert produce(topic, -1) == ErrorCode.NONE, "a message without a time"
        other = ErrorCode.NONE if "{}" in setting else ErrorCode.INVALID_TIMESTAMP
        assert produce(topic, now_ms - sign * hour_ms) == other
        assert alter(broker, TOPIC, topic, ("message.timestamp.type", SET, "LogAppendTime")) == ErrorCode.NONE
        assert produce(topic, now_ms + sign * hour_ms) == ErrorCode.NONE
    assert produce("there", 0, now_ms + 1_000 * hour_ms) == ErrorCode.NONE


def test_lists_are_appended_to_and_subtracted_from(broker: BrokerProcess) -> None:
    create(broker, "lists")
    throttled = "leader.replication.throttled.replicas"

    def value(name: str) -> str:
        return str(describe(broker, TOPIC, "lists")[name].value)

    assert alter(broker, TOPIC, "lists", ("cleanup.policy", APPEND, "delete")) == ErrorCode.NONE
    assert value("cleanup.policy") == "delete"
    assert alter(broker, TOPIC, "lists", ("cleanup.policy", SUBTRACT, "compact")) == ErrorCode.NONE
    assert value("cleanup.policy") == "delete"
    assert alter(broker, TOPIC, "lists", ("cleanup.policy", APPEND, "compact")) == ErrorCode.INVALID_CONFIG
    for change, left in ((("0:1,1:1"), "0:1,1:1"), ("1:1", "0:1,1:1"), ("2:1,2:1", "0:1,1:1,2:1")):
        assert alter(broker, TOPIC, "lists", (throttled, APPEND, change)) == ErrorCode.NONE
        assert value(throttled) == left
    assert alter(broker, TOPIC, "lists", (throttled, SUBTRACT, "1:1,9:9")) == ErrorCode.NONE
    assert value(throttled) == "0:1,2:1"
    for operation in (APPEND, SUBTRACT):
        for name in ("retention.ms", "no.such.setting"):
            assert alter(broker, TOPIC, "lists", (name, operation, "1")) == ErrorCode.INVALID_CONFIG
    assert alter(broker, TOPIC, "lists", (throttled, SET, None)) == ErrorCode.INVALID_REQUEST
    twice = [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)]
    assert alter(broker, TOPIC, "lists", *twice) == ErrorCode.INVALID_REQUEST


# -- settings of the broker ----------------------------------------------------------------------------------


def test_settings_of_the_broker_that_can_change_do_and_stay(tmp_path: Path) -> None:
    settings = ("plain.enabled=false", "topic.max.message.bytes=1000")
    with BrokerProcess(tmp_path, *settings) as broker:
        create(broker, "small")
        name = "topic.max.message.bytes"

        def shown() -> tuple[str, int]:
            config = describe(broker, BROKER, "1")[name]
            assert not config.read_only
            inherited = describe(broker, TOPIC, "small")["max.message.bytes"]
            assert inherited.value == config.value
            return config.value, config.config_source

        assert shown() == ("1000", 4)
        assert alter(broker, BROKER, "", (name, SET, "2000"), validate_only=True) == ErrorCode.NONE
        assert shown() == ("1000", 4)
        assert (
            alter(broker, BROKER, "", (name, SET, "2000"), ("auto.create.topics", SET, "false"))
            == ErrorCode.NONE
        )
        assert shown() == ("2000", 3)
        assert alter(broker, BROKER, "1", (name, SET, "3000")) == ErrorCode.NONE
        assert shown() == ("3000", 2)
        broker.restart()
        assert shown() == ("3000", 2), "also stronger than the command line"
        body = {"topics": [{"name": "unasked"}], "allow_auto_topic_creation": True}
        (unknown,) = ask(broker, ApiKey.METADATA, 9, body).topics
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert alter(broker, BROKER, "1", (name, DELETE, None)) == ErrorCode.NONE
        assert shown() == ("2000", 3)
        resource = {"resource_type": BROKER, "resource_name": "", "configs": []}
        replaced = ask(broker, ApiKey.ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False})
        assert replaced.responses[0].error_code == ErrorCode.NONE
        assert shown() == ("1000", 4)
        assert describe(broker, BROKER, "") == {}


@pytest.mark.parametrize(
    ("resource", "name", "value", "code"),
    [
        ("1", "durability", "os", ErrorCode.INVALID_REQUEST),
        ("1", "listeners", "127.0.0.1:1", ErrorCode.INVALID_REQUEST),
        ("1", "topic.partitions", "many", ErrorCode.INVALID_CONFIG),
        ("", "topic.partitions", "0", ErrorCode.INVALID_CONFIG),
        ("1", "no.such.setting", "1", ErrorCode.INVALID_CONFIG),
        ("7", "topic.partitions", "1", ErrorCode.INVALID_REQUEST),
        ("x", "topic.partitions", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cant_change_while_the_broker_runs_is_refused(
    broker: BrokerProcess, resource: str, name: str, value: str, code: ErrorCode
) -> None:
    before = {name: config.value for name, config in describe(broker, BROKER, "1").items()}
    assert alter(broker, BROKER, resource, (name, SET, value)) == code
    assert {name: config.value for name, config in describe(broker, BROKER, "1").items()} == before
