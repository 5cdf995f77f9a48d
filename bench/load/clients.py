"""Clients as every measure makes them: confluent-kafka with its defaults, but for what is said here."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS_MAX = 60.0
FETCH_PAUSE_MS = 2
BROKERS_DEFAULT = -1  # of the replication factor: 1, or 3 where Kafka has three brokers

# What librdkafka takes, by its name for it.
Settings = dict[str, str | int | float | bool]


def common(address: str) -> Settings:
    """The settings of all clients. librdkafka's own log lines would appear between progress and tables."""
    return {"bootstrap.servers": address, "log_level": 0}


def make_topic(address: str, name: str, partitions: int) -> None:
    """Create a topic, and return when a client finds a leader for each of its partitions."""
    admin = AdminClient(common(address))
    admin.create_topics([NewTopic(name, partitions, BROKERS_DEFAULT)])[name].result(SECONDS_MAX)
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        topic = admin.list_topics(name, timeout=10).topics[name]
        if len(topic.partitions) == partitions and all(p.leader >= 0 for p in topic.partitions.values()):
            return
        time.sleep(0.01)
    raise TimeoutError(f"topic {name} of {address} has no leaders after {SECONDS_MAX:.0f} s")


def delete_topic(address: str, name: str) -> None:
    """Delete a topic, and return when the broker says that it is gone. Raises KafkaException."""
    admin = AdminClient(common(address))
    admin.delete_topics([name])[name].result(SECONDS_MAX)


def serve(address: str) -> None:
    """Return when a new client gets an answer."""
    AdminClient(common(address)).list_topics(timeout=SECONDS_MAX)


def latency_producer(address: str, transactional_id: str | None = None) -> Producer:
    """A producer that sends each message at once, idempotently."""
    settings: Settings = common(address) | {"linger.ms": 0, "enable.idempotence": True, "acks": "all"}
    return initialised(settings, transactional_id)


def throughput_producer(address: str, transactional_id: str | None = None) -> Producer:
    """A producer that fills large batches."""
    settings: Settings = common(address) | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 1_000_000,
        # The default would hold 100,000 messages, of any size.
        "queue.buffering.max.kbytes": 64 << 10,
        "queue.buffering.max.messages": 1_000_000,
    }
    return initialised(settings, transactional_id)


def initialised(settings: Settings, transactional_id: str | None) -> Producer:
    """A producer; with a transactional id, one that is ready for transactions. Raises KafkaException."""
    if transactional_id is None:
        return Producer(settings)
    producer = Producer(settings | {"transactional.id": transactional_id, "transaction.timeout.ms": 120_000})
    producer.init_transactions(SECONDS_MAX)
    return producer


def committed_consumer(address: str, more: dict[str, object] | None = None) -> Consumer:
    """A consumer that sees committed data only, and commits no offsets."""
    return Consumer(
        common(address)
        | {
            "group.id": "bench",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # A client that has enough queued stops fetching, by default for a second: that would be measured.
            "fetch.queue.backoff.ms": FETCH_PAUSE_MS,
        }
        | (more or {})
    )


def places(topic: str, partitions: int, offset: int) -> list[TopicPartition]:
    """The first partitions of a topic, each from this offset."""
    return [TopicPartition(topic, partition, offset) for partition in range(partitions)]
