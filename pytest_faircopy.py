"""Fixtures of pytest for programs that use Kafka: a broker for tests, a topic, a producer's settings.

pytest finds them by the entry point of the package. Nothing is imported before a test asks for them.
docs/TESTING.md is the guide.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from faircopy.testing import Broker

BROKER: pytest.StashKey[Broker] = pytest.StashKey()
"""Where the broker is, once a test has asked for it."""


class ProducerSettings(NamedTuple):
    """The settings of a transactional producer, for each library; its transactional id is its own."""

    transactional_id: str
    confluent_kafka: dict[str, Any]
    aiokafka: dict[str, Any]
    kafka_python: dict[str, Any]


@pytest.fixture(scope="session")
def faircopy_broker(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """A broker for all tests of this session, and of this worker; after each test its faults are cleared."""
    from faircopy.testing import Broker

    with Broker() as broker:
        pytestconfig.stash[BROKER] = broker
        yield broker
        del pytestconfig.stash[BROKER]


@pytest.fixture
def faircopy_topic(faircopy_broker: Broker) -> str:
    """The name of a new topic with one partition, which no other test has."""
    return faircopy_broker.create_topic()


@pytest.fixture
def faircopy_producer(faircopy_broker: Broker) -> ProducerSettings:
    """Settings for a transactional producer, which no other test has."""
    name = f"producer-{uuid.uuid4().hex[:12]}"
    broker = faircopy_broker
    return ProducerSettings(
        name,
        broker.confluent_kafka.producer(name),
        broker.aiokafka.producer(name),
        broker.kafka_python.producer(name),
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Clear the faults of a test, before its other fixtures are torn down: these may need the broker."""
    broker = item.config.stash.get(BROKER, None)
    if broker is not None:
        broker.clear_faults()
