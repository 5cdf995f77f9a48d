"""Every kind of produce, by every client."""

from __future__ import annotations

import time

import pytest

from tests.clients.conftest import CLIENTS
from tests.clients.talk import Talk, commit_values, create_topic, failure

MESSAGE_TOO_LARGE = 10
HEADERS = (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""))


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_each_level_of_acks(talk: Talk, topic: str, acks: int) -> None:
    create_topic(talk.address, topic)
    producer = talk.producer(acks=acks)
    for number in range(50):
        producer.send(topic, b"%d" % number, partition=0)
    offsets = producer.flush()
    if acks:
        assert offsets == list(range(50))
    assert talk.values((topic, 0), 50) == [b"%d" % number for number in range(50)]


def test_keys_headers_and_times_come_back(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.producer()
    producer.send(topic, b"value", key=b"key", partition=0, headers=HEADERS, time_ms=1_234_567_890_123)
    producer.send(topic, None, key=b"", partition=0, time_ms=0)
    producer.send(topic, b"", partition=0, time_ms=2**40)
    producer.flush()
    first, second, third = talk.read((topic, 0))
    assert (first.key, first.value, first.headers) == (b"key", b"value", HEADERS)
    assert (first.time_ms, first.time_kind) == (1_234_567_890_123, 0)
    assert (second.key, second.value, second.headers) == (b"", None, ())
    assert (third.key, third.value, third.time_ms) == (None, b"", 2**40)


@pytest.mark.parametrize(
    ("client", "compression"),
    [(client, compression) for client in CLIENTS for compression in client.compressions],
    indirect=["client"],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize("transactional", [False, True], ids=["idempotent", "transactional"])
def test_compressions(talk: Talk, topic: str, compression: str, transactional: bool) -> None:
    create_topic(talk.address, topic)
    values = [b"%d " % number * 500 for number in range(100)]
    settings = {"compression": compression, "linger_ms": 20}
    if transactional:
        commit_values(talk.transactional(topic, **settings), (topic, 0), values)
    else:
        producer = talk.producer(idempotent=True, **settings)
        for value in values:
            producer.send(topic, value, partition=0)
        producer.flush()
    assert talk.values((topic, 0)) == values


def test_large_messages_up_to_the_limit(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, max_message_bytes="3000000")
    producer = talk.producer(max_bytes=4_000_000)
    # A batch has 61 bytes of header, and a record some more around its value.
    fitting = bytes(3_000_000 - 200)
    producer.send(topic, fitting, partition=0)
    producer.flush()
    producer.send(topic, bytes(3_000_001), partition=0)
    assert failure(producer.flush).code == MESSAGE_TOO_LARGE
    producer.send(topic, b"after", partition=0)
    producer.flush()
    assert talk.values((topic, 0)) == [fitting, b"after"]


def test_too_large_a_message_fails_its_transaction_only(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, max_message_bytes="10000")
    producer = talk.transactional(topic)
    producer.begin()
    producer.send(topic, b"small", partition=0)
    producer.send(topic, bytes(20_000), partition=0)
    assert failure(producer.flush).code == MESSAGE_TOO_LARGE
    producer.abort()
    # Clients go on as if the failed message had been written, with a gap in their sequence numbers, until the
    # broker tells them.
    producer = talk.transactional(topic)
    commit_values(producer, (topic, 0), [b"next"])
    assert talk.values((topic, 0)) == [b"next"]


def test_log_append_time(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    producer = talk.producer()
    producer.send(topic, b"plain", partition=0, time_ms=1_000)
    producer.flush()
    commit_values(talk.transactional(topic), (topic, 0), [b"transactional"])
    found = talk.read((topic, 0))
    assert [each.value for each in found] == [b"plain", b"transactional"]
    assert all(each.time_kind == 1 for each in found)
    assert all(before_ms - 1_000 <= each.time_ms <= int(time.time() * 1000) + 1_000 for each in found)


def test_partitioner_spreads_keys_and_keeps_them_together(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, 4)
    producer = talk.producer(idempotent=True)
    for number in range(80):
        producer.send(topic, b"%d" % number, key=b"key %d" % (number % 20))
    producer.flush()
    keys = [{each.key for each in talk.read((topic, partition))} for partition in range(4)]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 20
    assert all(keys)


def test_a_topic_is_made_when_first_used(talk: Talk, topic: str) -> None:
    producer = talk.producer()
    producer.send(topic, b"first")
    producer.flush()
    assert talk.values((topic, 0)) == [b"first"]


def test_many_batches_in_flight_keep_their_order(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.producer(idempotent=True)
    values = [b"%d" % number + bytes(3_000) for number in range(1_000)]
    for value in values:
        producer.send(topic, value, partition=0)
    producer.flush()
    assert talk.values((topic, 0)) == values
