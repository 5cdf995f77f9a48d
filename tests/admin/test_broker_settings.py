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
