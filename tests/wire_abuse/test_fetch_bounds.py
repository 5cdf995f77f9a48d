"""How much a Fetch gets: as much as it asks for (KIP-74), and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.fetch.fetch import LARGE_FRAME_BYTES
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.broker_process import BrokerProcess

PARTITIONS = 12
LARGE_BYTES = 9_000_000  # of a message
LARGE, SMALL, SPARSE = "large", "small", "sparse"
SEGMENT_BYTES = 1 << 20
FOR_EVER_MS = 3_600_000
MANY = LARGE_FRAME_BYTES // 28  # more than one request has that is answered at once


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with three topics: each partition has a large message, or a small one, or only the last."""
    with BrokerProcess(tmp_path_factory.mktemp("bounds"), "plain.enabled=false") as broker:
        with BrokerConnection(broker.address) as connection:
            configs = {"max.message.bytes": 10_000_000, "segment.bytes": SEGMENT_BYTES}
            for topic in (LARGE, SMALL, SPARSE):
                create(connection, topic, configs)
            for partition in range(PARTITIONS):
                produce(connection, LARGE, partition, LARGE_BYTES)
                produce(connection, SMALL, partition, 100)
            produce(connection, SPARSE, PARTITIONS - 1, LARGE_BYTES)
        yield broker
        broker.ensure_no_traceback()


@pytest.fixture
def connection(filled: BrokerProcess) -> Iterator[BrokerConnection]:
    with BrokerConnection(filled.address) as made:
        yield made


def create(connection: BrokerConnection, name: str, configs: dict[str, int]) -> None:
    listed = [{"name": key, "value": str(value)} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1, "assignments": []}
    answer = connection.ask(CREATE_TOPICS, 5, {"topics": [topic | {"configs": listed}], "timeout_ms": 5_000})
    assert answer.topics[0].error_code == ErrorCode.NONE


def produce(connection: BrokerConnection, topic: str, partition: int, size: int) -> None:
    """Write a message that is visible then: ListOffsets waits for what was acknowledged (P8)."""
    batch = build_batch([NewRecord(bytes(size))])
    data = [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}]
    body = {"transactional_id": None, "acks": -1, "timeout_ms": 5_000, "topic_data": data}
    answer = connection.ask(PRODUCE, 7, body)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    asked = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
    end = connection.ask(LIST_OFFSETS, 7, {"topics": [asked]}).topics[0].partitions[0]
    assert end.error_code == ErrorCode.NONE


def asked(topic: str, *, max_bytes: int = 1 << 20, times: int = 1) -> dict[str, Any]:
    """All partitions of a topic, from the start on."""
    each = [
        {"partition": partition, "fetch_offset": 0, "partition_max_bytes": max_bytes}
        for partition in range(PARTITIONS)
    ]
    return {"topic": topic, "partitions": each * times}


def sizes(connection: BrokerConnection, max_bytes: int, *topics: dict[str, Any], **fields: int) -> list[int]:
    """How many bytes each partition of a Fetch gets."""
    body = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": max_bytes, "topics": list(topics)}
    answer = connection.ask(FETCH, 11, body | fields)
    assert answer.error_code == ErrorCode.NONE
    found = [partition for topic in answer.responses for partition in topic.partitions]
    assert {partition.error_code for partition in found} == {ErrorCode.NONE}
    return [len(partition.records) for partition in found]


@pytest.mark.parametrize("times", [1, 1 + MANY // PARTITIONS], ids=["few", "many"])
@pytest.mark.parametrize("max_bytes", [1, 1 << 20, 50 << 20])
def test_only_the_first_large_batch_comes_in_any_case(
    connection: BrokerConnection, max_bytes: int, times: int
) -> None:
    first, *others = sizes(connection, max_bytes, asked(LARGE, times=times))
    assert first > LARGE_BYTES and set(others) == {0}


def test_large_batches_come_together_if_they_were_asked_for(connection: BrokerConnection) -> None:
    found = sizes(connection, 30_000_000, asked(LARGE, max_bytes=10_000_000))
    assert [size > LARGE_BYTES for size in found] == [True] * 3 + [False] * 9
    assert set(found[4:]) == {0}


@pytest.mark.parametrize("times", [1, 1 + MANY // PARTITIONS], ids=["few", "many"])
def test_the_first_that_has_data_need_not_be_the_first(connection: BrokerConnection, times: int) -> None:
    *empty, last = sizes(connection, 1 << 20, asked(SPARSE, times=times))[:PARTITIONS]
    assert set(empty) == {0} and last > LARGE_BYTES


def test_small_batches_leave_out_large_ones(connection: BrokerConnection) -> None:
    found = sizes(connection, 1 << 20, asked(SMALL), asked(LARGE))
    assert all(0 < size < 1_000 for size in found[:PARTITIONS]) and set(found[PARTITIONS:]) == {0}
    found = sizes(connection, 1 << 20, asked(LARGE), asked(SMALL))
    assert found[0] > LARGE_BYTES and set(found[1:]) == {0}


def test_old_batches_are_bounded_as_new_ones(filled: BrokerProcess) -> None:
    """They are checked on a thread before they are served."""
    filled.restart(kill=False)
    with BrokerConnection(filled.address) as connection:
        first, *others = sizes(connection, 1 << 20, asked(LARGE))
        assert first > LARGE_BYTES and set(others) == {0}


def test_an_ordinary_consumer_gets_it_all(filled: BrokerProcess) -> None:
    """librdkafka takes responses of up to 100 MB."""
    assert PARTITIONS * LARGE_BYTES > 100_000_000
    consumer = Consumer({"bootstrap.servers": filled.address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(LARGE, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    found: set[int | None] = set()
    while len(found) < PARTITIONS:
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        value = message.value()
        assert value is not None and len(value) == LARGE_BYTES
        found.add(message.partition())
    consumer.close()


@pytest.mark.parametrize("times", [1, 1 + MANY // PARTITIONS], ids=["few", "many"])
def test_nobody_waits_at_the_end_of_a_segment(tmp_path: Path, times: int) -> None:
    """More bytes are there, and an answer has only those of one segment."""
    with BrokerProcess(tmp_path, "plain.enabled=false") as broker, BrokerConnection(broker.address) as made:
        create(made, SMALL, {"segment.bytes": SEGMENT_BYTES})
        for _ in range(3):
            produce(made, SMALL, 0, SEGMENT_BYTES // 2)
        waiting = {"min_bytes": SEGMENT_BYTES, "max_wait_ms": FOR_EVER_MS}
        first, *others = asked(SMALL)["partitions"]
        found = sizes(made, 8 << 20, {"topic": SMALL, "partitions": [first, *others * times]}, **waiting)
        assert found[0] > SEGMENT_BYTES // 2


@pytest.mark.parametrize(("session_id", "session_epoch"), [(0, -1), (-1, -1), (0, 0), (7, 0), (7, -1)])
@pytest.mark.parametrize("times", [1, 1 + MANY // PARTITIONS], ids=["few", "many"])
def test_a_full_fetch_needs_no_session(
    connection: BrokerConnection, session_id: int, session_epoch: int, times: int
) -> None:
    """kafka-go writes -1 for both (KIP-227)."""
    named = {"session_id": session_id, "session_epoch": session_epoch}
    assert min(sizes(connection, 1 << 20, asked(SMALL, times=times), **named)[:PARTITIONS]) > 0


@pytest.mark.parametrize("session_epoch", [1, 7, 2**31 - 1, -2])
def test_a_session_that_is_not_there_does_not_go_on(connection: BrokerConnection, session_epoch: int) -> None:
    body = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1, "topics": []}
    answer = connection.ask(FETCH, 11, body | {"session_id": 7, "session_epoch": session_epoch})
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
