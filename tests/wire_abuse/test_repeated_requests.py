"""Repeated requests: each counts once, also after one that was refused."""

from __future__ import annotations

import pytest

from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.wire_abuse.instance import TOPIC, Instance, visible


def test_a_repeated_end_is_answered_as_the_first(connections: list[BrokerConnection]) -> None:
    producer = Instance(connections[0], "again/1")
    producer.add()
    producer.produce(b"again")
    assert [producer.end() for _ in range(3)] == [ErrorCode.NONE] * 3
    assert producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    assert visible(connections[0]).count(b"again") == 1


def test_a_repeated_draft_counts_once(connections: list[BrokerConnection]) -> None:
    producer = Instance(connections[0], "twice/1")
    producer.add()
    for _ in range(3):
        assert producer.produce(b"twice: a", sequence=0) == ErrorCode.NONE
    assert producer.produce(b"twice: c", sequence=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(b"twice: b", sequence=1) == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert visible(connections[0])[-2:] == [b"twice: a", b"twice: b"]


def test_a_repeated_plain_batch_counts_once(connections: list[BrokerConnection]) -> None:
    connection = connections[0]
    given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": None, "transaction_timeout_ms": 1})
    batch = build_batch(
        [NewRecord(b"plain twice")], producer_id=given.producer_id, producer_epoch=0, base_sequence=0
    )
    topics = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    body = {"acks": -1, "timeout_ms": 5_000, "topic_data": topics}
    offsets = {
        connection.ask(PRODUCE, 7, body).responses[0].partition_responses[0].base_offset for _ in range(3)
    }
    assert len(offsets) == 1
    assert visible(connection).count(b"plain twice") == 1


@pytest.mark.parametrize("transactional_id", ["in-flight/1", None])
def test_a_batch_after_a_refused_one_waits_for_it(
    connections: list[BrokerConnection], transactional_id: str | None
) -> None:
    """Several are in flight, and the first is refused for a passing reason: a flipped bit.

    If the second were taken, the first one's retry would be called a duplicate, and be lost.
    """
    connection = connections[0]
    producer = Instance(connection, transactional_id) if transactional_id else None
    if producer is not None:
        assert producer.add() == ErrorCode.NONE
        identity = (producer.producer_id, producer.epoch)
    else:
        given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": None, "transaction_timeout_ms": 1})
        identity = (given.producer_id, given.producer_epoch)

    def send(sequence: int, *, flip: bool = False) -> int:
        batch = bytearray(
            build_batch(
                [NewRecord(b"in flight: %d" % sequence)],
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=sequence,
                transactional=producer is not None,
            )
        )
        batch[-1] ^= flip
        body = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5_000}
        topics = {"topic_data": [{"name": TOPIC, "partition_data": [{"index": 0, "records": bytes(batch)}]}]}
        answer = connection.ask(PRODUCE, 7, body | topics)
        return int(answer.responses[0].partition_responses[0].error_code)

    before = len(visible(connection))
    assert send(0, flip=True) == ErrorCode.CORRUPT_MESSAGE
    assert [send(sequence) for sequence in range(1, 5)] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 4
    assert [send(sequence) for sequence in range(5)] == [ErrorCode.NONE] * 5
    if producer is not None:
        assert producer.end() == ErrorCode.NONE
    assert visible(connection)[before:] == [b"in flight: %d" % sequence for sequence in range(5)]
