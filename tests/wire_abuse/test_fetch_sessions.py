"""Fetch sessions by hand, with a real broker (KIP-227). Some clients of other tests use them, too."""

from __future__ import annotations

from typing import Any

import pytest

from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.fetch.fetch import MANY_PARTITIONS
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.broker_process import BrokerProcess

FOR_EVER_MS = 3_600_000


class Reader:
    """A client with a session, on a connection of its own."""

    def __init__(self, address: str, topic: str, version: int) -> None:
        self.connection = BrokerConnection(address)
        self.topic, self.version = topic, version
        self.session_id, self.epoch = 0, 0

    def fetch(
        self, offsets: dict[int, int], forgotten: list[int] | None = None, wait_ms: int = 0
    ) -> dict[int, list[bytes]]:
        """The values of the partitions that the answer has."""
        answer = self.ask(offsets, forgotten or [], wait_ms)
        assert answer.error_code == ErrorCode.NONE
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return {
            partition.partition_index: values(bytes(partition.records or b""))
            for topic in answer.responses
            for partition in topic.partitions
        }

    def ask(self, offsets: dict[int, int], forgotten: list[int], wait_ms: int = 0) -> Any:
        """A Fetch of these partitions."""
        partitions = [
            {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            for number, offset in offsets.items()
        ]
        body = {
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": [{"topic": self.topic, "partitions": partitions}] if partitions else [],
            "forgotten_topics_data": [{"topic": self.topic, "partitions": forgotten}] if forgotten else [],
        }
        return self.connection.ask(FETCH, self.version, body)


def values(records: bytes) -> list[bytes]:
    """Those of one batch, or of none."""
    return [record.value or b"" for record in decode_records(records)] if records else []


def create(address: str, name: str, partitions: int) -> None:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": []}
    with BrokerConnection(address) as connection:
        body = {"topics": [topic | {"configs": []}], "timeout_ms": 60_000}
        assert connection.ask(CREATE_TOPICS, 5, body).topics[0].error_code == ErrorCode.NONE


def produce(address: str, topic: str, partition: int, value: bytes) -> None:
    """Write a message that is visible then: ListOffsets waits for what was acknowledged (P8)."""
    data = [
        {
            "name": topic,
            "partition_data": [{"index": partition, "records": build_batch([NewRecord(value)])}],
        }
    ]
    body = {"transactional_id": None, "acks": -1, "timeout_ms": 5_000, "topic_data": data}
    with BrokerConnection(address) as connection:
        answer = connection.ask(PRODUCE, 7, body)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        asked = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
        end = connection.ask(LIST_OFFSETS, 7, {"topics": [asked]}).topics[0].partitions[0]
        assert end.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [7, 11, 12])
@pytest.mark.parametrize("partitions", [5, MANY_PARTITIONS + 5], ids=["few", "many"])
def test_a_session_goes_on(broker: BrokerProcess, version: int, partitions: int) -> None:
    topic = f"session.{version}.{partitions}"
    create(broker.address, topic, partitions)
    produce(broker.address, topic, 0, b"first")
    reader = Reader(broker.address, topic, version)
    every = dict.fromkeys(range(partitions), 0)
    assert reader.fetch(every) == {number: [] for number in range(partitions)} | {0: [b"first"]}
    assert reader.session_id

    assert reader.fetch({0: 1}) == {}, "nothing is new"
    produce(broker.address, topic, 4, b"second")
    assert reader.fetch({}) == {4: [b"second"]}
    assert reader.fetch({}, wait_ms=FOR_EVER_MS) == {4: [b"second"]}, "its place has not moved"
    produce(broker.address, topic, 3, b"third")
    assert reader.fetch({4: 1}, wait_ms=FOR_EVER_MS) == {3: [b"third"]}
    assert reader.fetch({3: 1}, forgotten=[4]) == {}
    produce(broker.address, topic, 4, b"nobody asks")
    assert reader.fetch({}) == {}
    assert reader.fetch({4: 1}) == {4: [b"nobody asks"]}
    reader.connection.__exit__()


def test_a_session_does_not_outlive_its_connection(broker: BrokerProcess) -> None:
    create(broker.address, "outlived", 2)
    reader = Reader(broker.address, "outlived", 11)
    assert set(reader.fetch({0: 0, 1: 0})) == {0, 1}
    reader.connection.__exit__()
    reader.connection = BrokerConnection(broker.address)
    assert reader.ask({}, []).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    reader.epoch = 0
    assert set(reader.fetch({0: 0, 1: 0})) == {0, 1}
    reader.epoch = 5
    assert reader.ask({}, []).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    reader.connection.__exit__()


def test_a_topic_that_is_deleted_is_told(broker: BrokerProcess) -> None:
    create(broker.address, "short.lived", 1)
    create(broker.address, "other", 1)
    reader = Reader(broker.address, "short.lived", 11)
    assert reader.fetch({0: 0, 1: 0}) == {0: [], 1: []}, "partition 1 does not exist"
    answer = reader.ask({}, [])
    assert [each.error_code for topic in answer.responses for each in topic.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    reader.connection.__exit__()
