"""Compacted topics: taken and shown as they were given; they keep every message, as Kafka may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.admin.asking import DELETE, SET, TOPIC, alter, ask, create, describe
from tests.broker_process import BrokerProcess, eventually

SEGMENT_BYTES = 1 << 14
AT_ONCE = {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": "0", "retention.ms": "0"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that applies retention all the time, and has its default of plain tables."""
    with BrokerProcess(tmp_path_factory.mktemp("compacted"), "retention.check.interval.ms=100") as process:
        yield process
        process.ensure_no_traceback()


def fill(broker: BrokerProcess, topic: str) -> None:
    """Write some segments."""
    for number in range(4):
        records = build_batch([NewRecord(bytes(SEGMENT_BYTES // 2), key=b"%d" % number)])
        partitions = {"name": topic, "partition_data": [{"index": 0, "records": records}]}
        body = {"acks": -1, "timeout_ms": 5_000, "topic_data": [partitions]}
        answer = ask(broker, ApiKey.PRODUCE, 9, body)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def start_of(broker: BrokerProcess, topic: str) -> int:
    """The first offset of a topic's partition."""
    asked = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}
    answer = ask(broker, ApiKey.LIST_OFFSETS, 5, {"topics": [asked], "isolation_level": 0})
    return int(answer.topics[0].partitions[0].offset)


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete, compact", "delete"])
def test_a_policy_is_shown_as_it_was_given(broker: BrokerProcess, policy: str) -> None:
    assert create(broker, f"as-given-{len(policy)}", {"cleanup.policy": policy}).error_code == ErrorCode.NONE
    shown = describe(broker, TOPIC, f"as-given-{len(policy)}")
    assert (shown["cleanup.policy"].value, shown["cleanup.policy"].config_source) == (policy, 1)
    is_compacted = "compact" in policy
    assert shown["plain.enabled"].value == str(not is_compacted).lower()
    assert shown["plain.enabled"].config_source == 5, "its default"


def test_nothing_is_deleted_by_age_or_size_unless_the_policy_has_delete(broker: BrokerProcess) -> None:
    policies = {"kept": "compact", "both": "compact,delete", "plain": "delete"}
    for topic, policy in policies.items():
        create(broker, topic, AT_ONCE | {"cleanup.policy": policy})
        fill(broker, topic)
    eventually(lambda: start_of(broker, "both") == start_of(broker, "plain") == 4)
    fill(broker, "plain")
    eventually(lambda: start_of(broker, "plain") == 8)
    assert start_of(broker, "kept") == 0
    assert alter(broker, TOPIC, "kept", ("cleanup.policy", SET, "compact,delete")) == ErrorCode.NONE
    eventually(lambda: start_of(broker, "kept") == 4)
    assert alter(broker, TOPIC, "plain", ("cleanup.policy", SET, "compact")) == ErrorCode.NONE
    fill(broker, "plain")
    fill(broker, "both")
    eventually(lambda: start_of(broker, "both") == 8)
    assert start_of(broker, "plain") == 8
    assert alter(broker, TOPIC, "plain", ("cleanup.policy", DELETE, None)) == ErrorCode.NONE
    eventually(lambda: start_of(broker, "plain") == 12)


def test_records_of_a_compacted_topic_are_not_deleted_on_request_either(broker: BrokerProcess) -> None:
    for topic, policy in (("state", "compact"), ("window", "compact,delete")):
        create(broker, topic, {"cleanup.policy": policy, "retention.ms": "-1"})
        fill(broker, topic)
    asked = [
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 2}]} for topic in ("state", "window")
    ]
    answer = ask(broker, ApiKey.DELETE_RECORDS, 2, {"topics": asked, "timeout_ms": 5_000})
    outcomes = [(each.partitions[0].error_code, each.partitions[0].low_watermark) for each in answer.topics]
    assert outcomes == [(ErrorCode.POLICY_VIOLATION, -1), (ErrorCode.NONE, 2)]
    assert [start_of(broker, topic) for topic in ("state", "window")] == [0, 2]


def test_a_compacted_topic_has_a_plain_table_only_if_it_asks_for_one(broker: BrokerProcess) -> None:
    settings = {"cleanup.policy": "compact", "plain.interval.ms": "50"}
    create(broker, "no-table", settings)
    create(broker, "a-table", settings | {"plain.enabled": "true"})
    fill(broker, "no-table")
    fill(broker, "a-table")
    tables = Path(broker.data_directory, "plain")
    eventually(lambda: list((tables / "a-table").rglob("*.parquet")))
    assert not (tables / "no-table").exists()
