"""Settings of topics: all that Kafka knows are taken, kept and shown; what Kafka refuses is refused."""

from __future__ import annotations

import time

import pytest

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.admin.asking import APPEND, DELETE, SET, SUBTRACT, TOPIC, alter, ask, create, describe
from tests.broker_process import BrokerProcess

# All settings of Kafka's topics, most with a value that is not the default.
KAFKAS = {
    "cleanup.policy": "compact,delete",
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


def test_every_setting_that_kafka_knows_is_taken_kept_and_shown(broker: BrokerProcess) -> None:
    made = create(broker, "full", KAFKAS)
    assert made.error_code == ErrorCode.NONE, made.error_message
    shown = describe(broker, TOPIC, "full")
    assert {name: shown[name].value for name in KAFKAS} == KAFKAS | {"preallocate": "true"}
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
        ("cleanup.policy", "compacted"),
        ("cleanup.policy", "compact,keep"),
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
    assert alter(broker, TOPIC, "lists", ("cleanup.policy", APPEND, "compact")) == ErrorCode.NONE
    assert value("cleanup.policy") == "delete,compact"
    assert alter(broker, TOPIC, "lists", ("cleanup.policy", SUBTRACT, "delete")) == ErrorCode.NONE
    assert value("cleanup.policy") == "compact"
    assert alter(broker, TOPIC, "lists", ("cleanup.policy", SUBTRACT, "compact")) == ErrorCode.INVALID_CONFIG
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


def test_blanks_around_a_value_are_no_part_of_it(broker: BrokerProcess) -> None:
    """As in Kafka (ConfigDef.parseType), where words for true and false may be large, too."""
    given = {
        "retention.ms": " 5000\t",
        "message.timestamp.type": " LogAppendTime ",
        "plain.enabled": " FALSE",
    }
    made = create(broker, "blanks", given)
    assert made.error_code == ErrorCode.NONE

    def shown(*names: str) -> list[str]:
        found = describe(broker, TOPIC, "blanks")
        return [found[name].value for name in names]

    assert shown(*given) == ["5000", "LogAppendTime", "false"]
    assert sorted(config.value for config in made.configs) == ["5000", "LogAppendTime", "false"]
    changes = [("retention.ms", SET, "\n6000 "), ("preallocate", SET, "True ")]
    assert alter(broker, TOPIC, "blanks", *changes) == ErrorCode.NONE
    assert shown("retention.ms", "preallocate") == ["6000", "true"]
    resource = {"resource_type": TOPIC, "resource_name": "blanks"}
    configs = {"configs": [{"name": "retention.ms", "value": " 7000 "}]}
    ask(broker, ApiKey.ALTER_CONFIGS, 1, {"resources": [resource | configs], "validate_only": False})
    assert shown("retention.ms") == ["7000"]
    for value in ("", " ", "5 000"):
        assert alter(broker, TOPIC, "blanks", ("retention.ms", SET, value)) == ErrorCode.INVALID_CONFIG
