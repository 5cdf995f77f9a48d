"""Timestamps that a client made up, and searches by time after the latest messages are gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cramjam
import pytest

from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.delete_records import SCHEMA as DELETE_RECORDS
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.batch import HEADER, HEADER_BYTES, LOG_APPEND_TIME, read_header
from faircopy.wire.compression import ZSTD
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.record_count import SECTION_BYTES_AT_ONCE
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.broker_process import BrokerProcess

NOWHERE = (-1, -1)
LATEST = -3
HOUR_MS = 3_600_000
NOW_MS = 1_790_000_000_000


class Topic:
    """A topic of one partition, as a client by hand sees it."""

    def __init__(self, broker: BrokerProcess, name: str, **configs: object) -> None:
        self.broker, self.name = broker, name
        listed = [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": []}
        answer = self.ask(CREATE_TOPICS, 5, {"topics": [topic | {"configs": listed}], "timeout_ms": 5_000})
        assert answer.topics[0].error_code == ErrorCode.NONE

    def ask(self, schema: Any, version: int, body: dict[str, Any]) -> Any:
        """A request of its own connection."""
        with BrokerConnection(self.broker.address) as connection:
            return connection.ask(schema, version, body)

    def produce(self, batch: bytes) -> int:
        """The error code of one batch."""
        data = [{"name": self.name, "partition_data": [{"index": 0, "records": batch}]}]
        body = {"transactional_id": None, "acks": -1, "timeout_ms": 5_000, "topic_data": data}
        answer = self.ask(PRODUCE, 7, body)
        return int(answer.responses[0].partition_responses[0].error_code)

    def send(self, *times: int, claimed: int | None = None, size: int = 1) -> int:
        """One batch with messages of these times, whose header claims a greatest time."""
        return self.produce(claiming(batch_of(times, size), claimed))

    def find(self, time_ms: int) -> tuple[int, int]:
        """Offset and time that ListOffsets finds."""
        asked = {"partition_index": 0, "timestamp": time_ms}
        answer = self.ask(LIST_OFFSETS, 7, {"topics": [{"name": self.name, "partitions": [asked]}]})
        found = answer.topics[0].partitions[0]
        assert found.error_code == ErrorCode.NONE
        return int(found.offset), int(found.timestamp)

    def delete(self, offset: int) -> None:
        """Delete the messages before an offset."""
        asked = {"partition_index": 0, "offset": offset}
        topics = {"topics": [{"name": self.name, "partitions": [asked]}], "timeout_ms": 5_000}
        answer = self.ask(DELETE_RECORDS, 1, topics)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def greatest_in_header(self) -> int:
        """What the first batch says to those who read it."""
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
        topics = [{"topic": self.name, "partitions": [asked]}]
        body = {"max_wait_ms": HOUR_MS, "min_bytes": 1, "max_bytes": 1, "topics": topics}
        answer = self.ask(FETCH, 11, body)
        return read_header(bytes(answer.responses[0].partitions[0].records)).max_timestamp_ms


def batch_of(times: Sequence[int], size: int = 1) -> bytes:
    """A batch of messages of these times."""
    return build_batch([NewRecord(bytes(size), timestamp_ms=time) for time in times])


def claiming(batch: bytes, max_timestamp_ms: int | None) -> bytes:
    """The batch with another greatest time in its header."""
    if max_timestamp_ms is None:
        return batch
    header = read_header(batch)._replace(max_timestamp_ms=max_timestamp_ms)
    return with_crc(HEADER.pack(*header) + batch[HEADER_BYTES:])


def compressed(batch: bytes) -> bytes:
    """The batch with zstd."""
    section = bytes(cramjam.zstd.compress(batch[HEADER_BYTES:]))
    header = read_header(batch)._replace(attributes=ZSTD, length=HEADER_BYTES - 12 + len(section))
    return with_crc(HEADER.pack(*header) + section)


def test_the_latest_messages_were_deleted(tmp_path: Path) -> None:
    """Kafka answers by what is left. So does a broker that starts again."""
    with BrokerProcess(tmp_path) as broker:
        topic = Topic(broker, "deleted")
        for times in ([1_000], [9_000, 4_000], [3_000]):
            assert topic.send(*times) == ErrorCode.NONE
        topic.delete(2)
        for _ in range(3):
            assert topic.find(1) == (2, 4_000)
            assert topic.find(4_001) == topic.find(9_000) == NOWHERE
            assert topic.find(LATEST) == (2, 4_000)
            broker.restart(kill=False)
        topic.delete(4)
        for _ in range(2):
            assert topic.find(1) == topic.find(LATEST) == NOWHERE
            broker.restart(kill=True)
        assert topic.send(2_000) == ErrorCode.NONE
        assert topic.find(1) == topic.find(LATEST) == (4, 2_000)
        broker.ensure_no_traceback()


@pytest.mark.parametrize("claimed", [-1, 0, 1_000, 8_999, 9_001, 2**62])
def test_a_header_that_does_not_tell_the_truth(broker: BrokerProcess, claimed: int) -> None:
    """Old versions of sarama leave -1 there. Kafka puts in what is true."""
    topic = Topic(broker, f"claims.{claimed}")
    assert topic.send(1_000, 9_000, 2_000, claimed=claimed) == ErrorCode.NONE
    assert topic.send(7_000) == ErrorCode.NONE
    assert topic.greatest_in_header() == 9_000
    assert [topic.find(time) for time in (1, 1_001, 9_000)] == [(0, 1_000), (1, 9_000), (1, 9_000)]
    assert topic.find(9_001) == NOWHERE
    assert topic.find(LATEST) == (1, 9_000)


@pytest.mark.parametrize("claimed", [-1, 1_000, 2**62])
def test_a_large_batch_that_does_not_tell_the_truth(broker: BrokerProcess, claimed: int) -> None:
    """Its records are counted on a thread."""
    topic = Topic(broker, f"large.{claimed}")
    batch = batch_of([1_000, 9_000, 2_000], SECTION_BYTES_AT_ONCE)
    assert topic.produce(compressed(claiming(batch, claimed))) == ErrorCode.NONE
    assert topic.greatest_in_header() == 9_000
    assert topic.find(1_001) == topic.find(LATEST) == (1, 9_000)


def test_limits_hold_for_each_message(broker: BrokerProcess) -> None:
    """Not only for what the header says."""
    topic = Topic(
        broker, "limits", message_timestamp_before_max_ms=10**15, message_timestamp_after_max_ms=10**13
    )
    late = [NOW_MS, NOW_MS + 10**14, NOW_MS]
    assert topic.send(*late) == topic.send(*late, claimed=NOW_MS) == ErrorCode.INVALID_TIMESTAMP
    early = [NOW_MS, NOW_MS - 10**15, NOW_MS]
    assert topic.send(*early) == topic.send(*early, claimed=-1) == ErrorCode.INVALID_TIMESTAMP
    assert topic.send(NOW_MS, NOW_MS - HOUR_MS, NOW_MS) == ErrorCode.NONE
    assert topic.find(LATEST) == (0, NOW_MS)


def test_only_the_broker_says_log_append_time(broker: BrokerProcess) -> None:
    topic = Topic(broker, "append.time")
    batch = batch_of([1_000])
    header = read_header(batch)._replace(attributes=LOG_APPEND_TIME)
    stamped = with_crc(HEADER.pack(*header) + batch[HEADER_BYTES:])
    assert topic.produce(stamped) == ErrorCode.INVALID_TIMESTAMP
    assert topic.find(1) == NOWHERE
