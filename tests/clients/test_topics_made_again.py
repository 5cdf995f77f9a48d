"""Producers that go on when their topic is deleted and made again under the same name."""

from __future__ import annotations

import threading

import pytest

from tests.clients import confluent_adapter
from tests.clients.adapter import ClientFailed, Producer
from tests.clients.talk import Talk, commit_values, create_topic, delete_topic

SETTINGS = ("auto.create.topics=false",)
BATCHES = 200


def make_again(address: str, topic: str) -> None:
    delete_topic(address, topic)
    create_topic(address, topic)


def test_an_idempotent_producer_goes_on(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.producer(idempotent=True)
    for life in range(3):
        values = [b"%d.%d " % (life, number) + bytes(3_000) for number in range(BATCHES)]
        for value in values:
            producer.send(topic, value, partition=0)
        producer.flush()
        assert talk.values((topic, 0)) == values
        make_again(talk.address, topic)


def test_a_transactional_producer_goes_on(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    producer = talk.transactional(topic)
    for life in range(3):
        values = [b"%d.%d" % (life, number) for number in range(20)]
        for value in values:
            commit_values(producer, (topic, 0), [value])
        assert talk.values((topic, 0)) == values
        make_again(talk.address, topic)


@pytest.mark.parametrize("client", [confluent_adapter], indirect=True, ids=lambda client: client.name)
def test_a_topic_made_again_within_a_transaction(talk: Talk, topic: str) -> None:
    """The transaction fails as a whole, or what came after is there; its producer goes on."""
    create_topic(talk.address, topic)
    producer = talk.transactional(topic)
    commit_values(producer, (topic, 0), [b"former"])
    producer.begin()
    producer.send(topic, b"lost", partition=0)
    producer.flush()
    make_again(talk.address, topic)
    kept = [b"second"]
    try:
        producer.send(topic, b"first", partition=0)
        producer.commit()
        kept.insert(0, b"first")
    except ClientFailed as error:
        assert error.must_abort, error
        producer.abort()
    commit_or_repeat(producer, topic, b"second")
    assert talk.values((topic, 0)) == kept


def commit_or_repeat(producer: Producer, topic: str, value: bytes) -> None:
    """Commit a message. If the client asks for an abort, once more."""
    try:
        commit_values(producer, (topic, 0), [value])
    except ClientFailed as error:
        assert error.must_abort, error
        producer.abort()
        commit_values(producer, (topic, 0), [value])


@pytest.mark.parametrize("client", [confluent_adapter], indirect=True, ids=lambda client: client.name)
def test_nothing_is_overtaken_while_a_topic_is_made_again(talk: Talk, topic: str) -> None:
    """Five batches are in flight. Some of them find no topic, and the next ones find the new one: if one of
    these were taken first, librdkafka would count those before as acknowledged, too.
    """
    create_topic(talk.address, topic)
    producer = talk.producer(idempotent=True)
    for life in range(3):
        maker = threading.Thread(target=make_again, args=(talk.address, topic))
        for number in range(60_000):
            producer.send(topic, b"%d" % (60_000 * life + number), partition=0)
            if number == 20_000:
                maker.start()
        producer.flush()
        maker.join()
        kept = [int(value or b"") for value in talk.values((topic, 0))]
        assert kept == list(range(60_000 * (life + 1) - len(kept), 60_000 * (life + 1)))
