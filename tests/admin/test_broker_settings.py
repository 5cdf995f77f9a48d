"""Settings of the broker: which can change while it runs, and which of several values counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.admin.asking import BROKER, DELETE, SET, TOPIC, alter, ask, create, describe
from tests.broker_process import BrokerProcess


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


def test_blanks_around_a_value_are_no_part_of_it(broker: BrokerProcess) -> None:
    for resource in ("", "1"):
        changes = [("topic.partitions", SET, " 3 "), ("auto.create.topics", SET, " False\t")]
        assert alter(broker, BROKER, resource, *changes) == ErrorCode.NONE
        found = describe(broker, BROKER, resource)
        assert (found["topic.partitions"].value, found["auto.create.topics"].value.lower()) == ("3", "false")
        for name, _, _ in changes:
            assert alter(broker, BROKER, resource, (name, DELETE, None)) == ErrorCode.NONE


@pytest.mark.parametrize("resource", ["", "1"])
@pytest.mark.parametrize(
    ("theirs", "ours", "value"),
    [
        ("num.partitions", "topic.partitions", "4"),
        ("message.max.bytes", "topic.max.message.bytes", "4000"),
        ("log.retention.ms", "topic.retention.ms", "5000000"),
        ("log.retention.bytes", "topic.retention.bytes", "6000000"),
        ("log.segment.bytes", "topic.segment.bytes", "7000000"),
        ("auto.create.topics.enable", "auto.create.topics", "false"),
        ("max.connections", "connections.max", "500"),
        ("connections.max.idle.ms", "connections.idle.ms", "80000"),
    ],
)
def test_what_kafka_calls_our_settings(
    broker: BrokerProcess, resource: str, theirs: str, ours: str, value: str
) -> None:
    before = describe(broker, BROKER, "1")
    assert before[theirs].value == before[ours].value
    assert alter(broker, BROKER, resource, (theirs, SET, value)) == ErrorCode.NONE
    for name in (theirs, ours):
        assert describe(broker, BROKER, resource)[name].value.lower() == value
        found = describe(broker, BROKER, "1")[name]
        assert (found.value.lower(), found.read_only) == (value, False)
    both = ((theirs, SET, value), (ours, SET, value))
    assert alter(broker, BROKER, resource, *both) == ErrorCode.INVALID_REQUEST
    assert alter(broker, BROKER, resource, (theirs, DELETE, None)) == ErrorCode.NONE
    after = describe(broker, BROKER, "1")
    assert after[ours].value == after[theirs].value == before[ours].value


def test_topics_have_the_defaults_that_are_set_by_kafkas_names(broker: BrokerProcess) -> None:
    create(broker, "by-default")
    assert alter(broker, BROKER, "", ("message.max.bytes", SET, "4321")) == ErrorCode.NONE
    assert describe(broker, TOPIC, "by-default")["max.message.bytes"].value == "4321"
    assert alter(broker, BROKER, "", ("message.max.bytes", DELETE, None)) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "9"),
        ("log.cleaner.min.cleanable.ratio", " 0.7"),
        ("unclean.leader.election.enable", "true"),
        ("leader.replication.throttled.rate", "1000"),
        ("compression.type", "zstd"),
    ],
)
def test_settings_of_kafka_without_effect_are_kept_and_shown(tmp_path: Path, name: str, value: str) -> None:
    with BrokerProcess(tmp_path, "plain.enabled=false") as broker:
        default = describe(broker, BROKER, "1")[name]
        assert (default.config_source, default.read_only) == (5, False)
        assert "No effect here" in default.documentation
        assert alter(broker, BROKER, "", (name, SET, value)) == ErrorCode.NONE
        broker.restart()
        for resource in ("", "1"):
            found = describe(broker, BROKER, resource)[name]
            assert (found.value, found.config_source) == (value.strip(), 3)
        assert alter(broker, BROKER, "", (name, DELETE, None)) == ErrorCode.NONE
        assert describe(broker, BROKER, "1")[name].value == default.value
        broker.ensure_no_traceback()


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("num.io.threads", "many", ErrorCode.INVALID_CONFIG),
        ("log.cleaner.min.cleanable.ratio", "half", ErrorCode.INVALID_CONFIG),
        ("log.cleanup.policy", "compact", ErrorCode.INVALID_CONFIG),
        ("log.message.timestamp.type", "LogAppendTime", ErrorCode.INVALID_CONFIG),
        ("default.replication.factor", "3", ErrorCode.INVALID_CONFIG),
        ("num.partitions", "0", ErrorCode.INVALID_CONFIG),
        ("broker.id", "2", ErrorCode.INVALID_REQUEST),
        ("log.dirs", "elsewhere", ErrorCode.INVALID_REQUEST),
    ],
)
def test_values_that_kafkas_settings_can_not_have_here(
    broker: BrokerProcess, name: str, value: str, code: ErrorCode
) -> None:
    before = describe(broker, BROKER, "1")[name].value
    assert alter(broker, BROKER, "1", (name, SET, value)) == code
    assert describe(broker, BROKER, "1")[name].value == before
    assert alter(broker, BROKER, "1", ("log.cleanup.policy", SET, "delete")) == ErrorCode.NONE
    assert alter(broker, BROKER, "1", ("log.cleanup.policy", DELETE, None)) == ErrorCode.NONE
