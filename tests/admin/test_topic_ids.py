"""Topics by id: a reader of one that is deleted is never given another topic of its name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from faircopy.api.delete_topics import SCHEMA as DELETE_TOPICS
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.admin.asking import create
from tests.broker_process import BrokerProcess

BY_ID = range(13, 19)
FOR_EVER_MS = 3_600_000


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[BrokerConnection]:
    with BrokerConnection(broker.address) as made:
        yield made


def make(broker: BrokerProcess, name: str) -> bytes:
    """Create a topic. Returns its id."""
    made = create(broker, name)
    assert made.error_code == ErrorCode.NONE, made.error_message
    return bytes(made.topic_id)


def produce(connection: BrokerConnection, topic: str, value: bytes) -> None:
    """Write a message that is visible then: ListOffsets waits for what was acknowledged (P8)."""
    partitions = [{"index": 0, "records": build_batch([NewRecord(value)])}]
    topics = [{"name": topic, "partition_data": partitions}]
    answer = connection.ask(PRODUCE, 9, {"acks": -1, "timeout_ms": 5_000, "topic_data": topics})
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    latest = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    connection.ask(LIST_OFFSETS, 5, {"topics": [latest], "isolation_level": 0})


def fetch(
    connection: BrokerConnection, version: int, *asked: tuple[bytes, int], wait_ms: int = 0, **fields: Any
) -> Message:
    """Fetch from offset 0 of partitions by the ids of their topics."""
    topics = [
        {
            "topic_id": topic_id,
            "partitions": [{"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20}],
        }
        for topic_id, number in asked
    ]
    body = {"max_wait_ms": wait_ms, "min_bytes": 1, "topics": topics}
    answer = connection.ask(FETCH, version, body | fields)
    assert answer.error_code == ErrorCode.NONE
    return answer


def told(answer: Message) -> list[tuple[bytes, int, list[bytes | None]]]:
    """For each topic its id, the error of its partition, and the values."""
    return [
        (
            bytes(topic.topic_id),
            partition.error_code,
            [record.value for record in decode_records(partition.records)] if partition.records else [],
        )
        for topic in answer.responses
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", BY_ID)
def test_a_partition_is_read_by_the_id_of_its_topic(
    broker: BrokerProcess, connection: BrokerConnection, version: int
) -> None:
    topic_id = make(broker, f"by-id-{version}")
    produce(connection, f"by-id-{version}", b"here")
    unknown = b"u" * 16
    asked = [(unknown, 0), (topic_id, 0), (bytes(16), 0), (topic_id, 9)]
    assert told(fetch(connection, version, *asked)) == [
        (unknown, ErrorCode.UNKNOWN_TOPIC_ID, []),
        (topic_id, ErrorCode.NONE, [b"here"]),
        (bytes(16), ErrorCode.UNKNOWN_TOPIC_ID, []),
        (topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    ]


def test_a_fetch_by_id_waits_for_messages(broker: BrokerProcess, connection: BrokerConnection) -> None:
    topic_id, answers = make(broker, "waited-for"), []
    assert told(fetch(connection, 13, (topic_id, 0))) == [(topic_id, ErrorCode.NONE, [])]

    def wait() -> None:
        answers.append(fetch(connection, 18, (topic_id, 0), wait_ms=FOR_EVER_MS))

    reader = threading.Thread(target=wait)
    reader.start()
    with BrokerConnection(broker.address) as writer:
        produce(writer, "waited-for", b"late")
    reader.join()
    assert told(answers[0]) == [(topic_id, ErrorCode.NONE, [b"late"])]


def test_a_session_by_id_never_goes_on_with_another_topic_of_the_name(
    broker: BrokerProcess, connection: BrokerConnection
) -> None:
    before = make(broker, "made-again")
    produce(connection, "made-again", b"old")
    begun = fetch(connection, 15, (before, 0), session_epoch=0)
    assert told(begun) == [(before, ErrorCode.NONE, [b"old"])]
    connection.ask(DELETE_TOPICS, 5, {"topic_names": ["made-again"], "timeout_ms": 5_000})
    after = make(broker, "made-again")
    assert after != before
    produce(connection, "made-again", b"new")
    session = {"session_id": begun.session_id}
    gone_on = fetch(connection, 15, session_epoch=1, **session)
    assert told(gone_on) == [(before, ErrorCode.UNKNOWN_TOPIC_ID, [])]
    forgotten = [{"topic_id": before, "partitions": [0]}]
    changed = fetch(connection, 18, (after, 0), session_epoch=2, forgotten_topics_data=forgotten, **session)
    assert told(changed) == [(after, ErrorCode.NONE, [b"new"])]
