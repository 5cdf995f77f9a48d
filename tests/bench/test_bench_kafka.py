"""Apache Kafka as a system under test: it serves transactions, and keeps data and address over a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.systems.kafka import Kafka, find_kafka
from bench.systems.system import Peer, memory_bytes, size_bytes
from tests.fetch.needed import needed

# After a kill, Kafka lets a broker register again when its last session is over: by default 9 seconds.
EARLY_RETURN = ("broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=500")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    needed(find_kafka)
    broker = Kafka(tmp_path, "flush.messages=1", "num.partitions=2", *EARLY_RETURN)
    try:
        yield broker
    finally:
        broker.stop()


def transact(broker: Peer, value: str, *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "test", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", value, partition=1)
    producer.flush(10)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def committed(broker: Peer, count: int) -> list[bytes | None]:
    """The first committed values of the topic, in their order."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "log_level": 0})
    consumer.assign([TopicPartition("orders", 1, 0)])
    found = [message.value() for message in consumer.consume(count, 20) if not message.error()]
    consumer.close()
    return found


def test_transactions_over_a_kill(kafka: Kafka) -> None:
    assert kafka.about.name == "kafka fsync"
    assert kafka.about.durability == "fsync"
    assert kafka.about.version.startswith("4.")
    address = kafka.address
    kafka.start()
    transact(kafka, "no", commit=False)
    transact(kafka, "yes", commit=True)
    assert committed(kafka, 1) == [b"yes"]

    kafka.kill()
    kafka.start()
    assert kafka.address == address
    transact(kafka, "again", commit=True)
    assert committed(kafka, 2) == [b"yes", b"again"]

    assert memory_bytes(kafka.pid) > 100 << 20
    assert [path.name for path in kafka.log_directories("orders")] == ["orders-0", "orders-1"]
    assert all(size_bytes(path) for path in kafka.log_directories("orders"))
