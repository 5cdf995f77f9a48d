"""Transactions: commit, abort, offsets in them, zombies, timeouts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from faircopy.api.offset_fetch import SCHEMA as OFFSET_FETCH
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import STOP_SECONDS, BrokerProcess, eventually
from tests.child_process import next_line, start_child
from tests.clients.adapter import ClientFailed, Got, Place, Producer
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Talk, commit_values, create_topic, failure, poll_until

SETTINGS = ("transaction.abort.interval.ms=50", "transaction.max.timeout.ms=120000")

INVALID_PRODUCER_EPOCH, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED = 47, 50, 90
TIMEOUT_MS = 6_000  # long enough, on a busy machine, for what comes before the timeout
FENCED = (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED)


def test_commits_and_aborts_one_after_the_other(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.transactional(topic)
    expected = []
    for number in range(30):
        producer.begin()
        for part in range(3):
            producer.send(topic, b"%d.%d" % (number, part), partition=0)
        if number % 3 == 1:
            producer.flush()
            producer.abort()
        else:
            producer.commit()
            expected += [b"%d.%d" % (number, part) for part in range(3)]
    assert talk.values((topic, 0)) == expected


def test_an_abort_of_what_was_not_sent_yet(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.transactional(topic, linger_ms=1_000)
    producer.begin()
    producer.send(topic, b"never", partition=0)
    producer.abort()
    commit_values(producer, (topic, 0), [b"kept"])
    assert talk.values((topic, 0)) == [b"kept"]


def test_empty_transactions(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.transactional(topic)
    for _ in range(3):
        producer.begin()
        producer.commit()
        producer.begin()
        producer.abort()
    commit_values(producer, (topic, 0), [b"kept"])
    assert talk.values((topic, 0)) == [b"kept"]


def test_many_partitions(talk: Talk, topic: str) -> None:
    """All partitions show a transaction when its commit is acked, and none before."""
    create_topic(talk.address, topic, 40)
    places = [(topic, number) for number in range(40)]
    producer = talk.transactional(topic)
    consumer = talk.consumer()
    for count in (1, 2, 3):
        producer.begin()
        for place in places:
            producer.send(topic, b"%d" % count, partition=place[1])
        producer.flush()
        assert consumer.ends(places) == dict.fromkeys(places, count - 1)
        producer.commit()
        assert consumer.ends(places) == dict.fromkeys(places, count)
    assert talk.values((topic, 39)) == [b"1", b"2", b"3"]


# -- offsets in transactions ---------------------------------------------------------------------------------


def test_offsets_are_committed_with_the_transaction(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    place = (topic, 0)
    producer = talk.transactional(topic)
    consumer = talk.consumer(group=topic)
    consumer.assign({place: 0})
    producer.begin()
    producer.send_offsets(consumer, {place: 5})
    producer.abort()
    assert consumer.committed([place]) == {place: None}
    for offset in range(1, 20):
        producer.begin()
        producer.send(topic, b"x", partition=0)
        producer.send_offsets(consumer, {place: offset})
        producer.commit()
        # Whoever asks after the ack is told what was committed: a second instance begins there.
        assert consumer.committed([place]) == {place: offset}


def transform(talk: Talk, source: Place, target: str, limit: int) -> list[Got]:
    """Consume, transform, produce: transactions of ten messages, `limit` of them; what was read."""
    producer = talk.transactional(f"{target}/transformer")
    member = talk.consumer(group=target)
    start = member.committed([source])[source] or 0
    member.assign({source: start})
    read: list[Got] = []
    for _ in range(limit):
        batch = poll_until(member, 1)[:10]
        member.assign({source: batch[-1].offset + 1})
        producer.begin()
        for message in batch:
            producer.send(target, message.value, partition=0)
        producer.send_offsets(member, {source: batch[-1].offset + 1})
        producer.commit()
        read += batch
        if batch[-1].value == b"last":
            break
    return read


def test_consume_transform_produce(talk: Talk, topic: str) -> None:
    """Each message is in the target once, though the first instance hangs in the middle of a transaction."""
    source, target = (topic, 0), f"{topic}-target"
    create_topic(talk.address, topic)
    create_topic(talk.address, target)
    plain = talk.producer()
    values = [b"%d" % number for number in range(100)]
    for number, value in enumerate(values):
        plain.send(topic, value, partition=0)
        if number % 5 == 4:
            plain.flush()
    transform(talk, source, target, limit=1)
    # The next one gets half way: when its successor comes, its messages and offsets are uncommitted.
    hanging = talk.transactional(f"{target}/transformer")
    reader = talk.consumer(group=target)
    done = reader.committed([source])[source] or 0
    reader.assign({source: done})
    hanging.begin()
    for message in poll_until(reader, 1)[:10]:
        hanging.send(target, message.value, partition=0)
    hanging.flush()
    hanging.send_offsets(reader, {source: 99})
    plain.send(topic, b"last", partition=0)
    plain.flush()
    transform(talk, source, target, limit=1_000)
    assert talk.values((target, 0)) == [*values, b"last"]
    assert reader.committed([source]) == {source: 101}


CRASHING = """
import sys
from confluent_kafka import Consumer, Producer, TopicPartition
address, source, target = sys.argv[1:]
producer = Producer({"bootstrap.servers": address, "transactional.id": target + "/crashing"})
producer.init_transactions(60)
consumer = Consumer({"bootstrap.servers": address, "group.id": target, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False})
consumer.assign([TopicPartition(source, 0, (consumer.committed([TopicPartition(source, 0)], 60)[0].offset))])
while True:
    message = consumer.poll(60)
    producer.begin_transaction()
    producer.produce(target, message.value(), partition=0)
    producer.send_offsets_to_transaction([TopicPartition(source, 0, message.offset() + 1)],
                                         consumer.consumer_group_metadata(), 60)
    producer.flush(60)
    producer.commit_transaction(60)
    print(message.offset(), flush=True)
    if message.value() == b"last":
        break
"""


def test_consume_transform_produce_with_kills(broker: BrokerProcess, topic: str) -> None:
    """kill -9 of the application, at any point, many times: the target has each message once, in order."""
    target = f"{topic}-target"
    with Talk(CLIENTS[0], broker.address) as talk:
        create_topic(talk.address, topic)
        create_topic(talk.address, target)
        values = [b"%d" % number for number in range(800)] + [b"last"]
        plain = talk.producer()
        for value in values:
            plain.send(topic, value, partition=0)
        plain.flush()
        for turn in range(10):
            command = [sys.executable, "-c", CRASHING, broker.address, topic, target]
            with start_child(command, stdout=subprocess.PIPE) as process:
                for _ in range(40 + 7 * turn):
                    assert next_line(process)
                if turn < 9:
                    process.kill()
                else:
                    assert process.wait(STOP_SECONDS) == 0
        assert talk.values((target, 0)) == values


# -- zombies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["idle", "commits", "adds", "sends"])
def test_a_second_instance_fences_the_first(talk: Talk, topic: str, moment: str) -> None:
    """Nothing of the zombie is visible, whatever it tries; its successor is not disturbed."""
    create_topic(talk.address, topic, 2)
    zombie = talk.transactional(topic)
    commit_values(zombie, (topic, 0), [b"before"])
    if moment != "idle":
        zombie.begin()
        zombie.send(topic, b"lost", partition=0)
        zombie.flush()
    successor = talk.transactional(topic)
    successor.begin()
    successor.send(topic, b"successor", partition=0)
    successor.flush()
    assert failure(lambda: go_on(zombie, topic, moment)).code in FENCED
    with pytest.raises(ClientFailed):
        zombie.abort()
    actions: tuple[Callable[[], object], ...] = (
        lambda: commit_values(zombie, (topic, 1), [b"zombie"]), zombie.commit, zombie.abort,
    )  # fmt: skip
    for action in actions:
        with pytest.raises(ClientFailed):
            action()
    successor.commit()
    commit_values(successor, (topic, 0), [b"next"])
    assert talk.values((topic, 0)) == [b"before", b"successor", b"next"]
    assert talk.values((topic, 1)) == []


def go_on(zombie: Producer, topic: str, moment: str) -> None:
    """What an instance does that does not know that it has a successor."""
    if moment == "idle":
        zombie.begin()
    if moment != "commits":
        zombie.send(topic, b"zombie", partition=1 if moment == "adds" else 0)
        zombie.flush()
    zombie.commit()


def test_two_ids_of_one_group_do_not_fence_each_other(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    first, second = talk.transactional(f"{topic}/1"), talk.transactional(f"{topic}/2")
    for number in range(3):
        commit_values(first, (topic, 0), [b"1.%d" % number])
        commit_values(second, (topic, 0), [b"2.%d" % number])
    assert len(talk.values((topic, 0))) == 6


# -- timeouts ------------------------------------------------------------------------------------------------


def test_a_transaction_past_its_timeout_is_aborted(broker: BrokerProcess, talk: Talk, topic: str) -> None:
    """It is never visible, its producer is told at the latest with its commit, and a new instance goes on."""
    create_topic(talk.address, topic)
    slow = talk.transactional(topic, timeout_ms=TIMEOUT_MS)
    slow.begin()
    slow.send(topic, b"slow", partition=0)
    slow.flush()
    eventually(lambda: f"of '{topic}' is aborted: it was open for more than its timeout" in broker.log)
    assert failure(slow.commit).code in FENCED
    with pytest.raises(ClientFailed):
        commit_values(slow, (topic, 0), [b"slow again"])
    commit_values(talk.transactional(topic), (topic, 0), [b"new"])
    assert talk.values((topic, 0)) == [b"new"]


def test_a_timeout_greater_than_the_broker_allows(talk: Talk, topic: str) -> None:
    error = failure(lambda: talk.transactional(topic, timeout_ms=120_001))
    assert error.code == INVALID_TRANSACTION_TIMEOUT
    talk.transactional(topic, timeout_ms=120_000)


def test_the_timeout_frees_the_groups_offsets(talk: Talk, topic: str) -> None:
    """An offset in a transaction that hangs is unstable until its timeout, and then as it was before."""
    create_topic(talk.address, topic)
    place = (topic, 0)
    consumer = talk.consumer(group=topic)
    consumer.assign({place: 0})
    consumer.commit({place: 1})
    hanging = talk.transactional(topic, timeout_ms=TIMEOUT_MS)
    hanging.begin()
    hanging.send_offsets(consumer, {place: 2})
    assert code_of_offset(talk.address, place) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert consumer.committed([place]) == {place: 1}
    eventually(lambda: code_of_offset(talk.address, place) == ErrorCode.NONE)


def code_of_offset(address: str, place: Place) -> ErrorCode:
    """What one is told who wants only an offset that no open transaction may change."""
    topic, partition = place
    asked = {"topics": [{"name": topic, "partition_indexes": [partition]}], "require_stable": True}
    with BrokerConnection(address) as connection:
        answer = connection.ask(OFFSET_FETCH, 7, {"group_id": topic} | asked)
    return ErrorCode(answer.topics[0].partitions[0].error_code)
