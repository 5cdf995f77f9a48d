"""Producers that go on when their topic is deleted and made again under the same name."""

from __future__ import annotations

import pytest

from tests.clients import confluent_adapter
from tests.clients.adapter import ClientFailed, Producer
from tests.clients.talk import Talk, commit_values, create_topic, delete_topic

RECOVERING = (confluent_adapter,)
"""aiokafka 0.14 can't begin its sequences anew (KIP-360). kafka-python 3.0.12 can't within a transaction, and
reports an error for the first batch otherwise.
"""

BATCHES = 200


def make_again(address: str, topic: str) -> None:
    delete_topic(address, topic)
    create_topic(address, topic)


@pytest.mark.parametrize("client", RECOVERING, indirect=True, ids=lambda client: client.name)
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


@pytest.mark.parametrize("client", RECOVERING, indirect=True, ids=lambda client: client.name)
def test_a_transactional_producer_goes_on(talk: Talk, topic: str) -> None:
    """At worst it is told to abort one transaction."""
    create_topic(talk.address, topic)
    producer = talk.transactional(topic)
    for life in range(3):
        values = [b"%d.%d" % (life, number) for number in range(20)]
        for value in values:
            commit_or_repeat(producer, topic, value)
        assert talk.values((topic, 0)) == values
        make_again(talk.address, topic)


@pytest.mark.parametrize("client", RECOVERING, indirect=True, ids=lambda client: client.name)
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
