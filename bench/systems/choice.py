"""Systems by the names that the results use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.systems.faircopy import Faircopy
from bench.systems.faircopy_set import FaircopySet
from bench.systems.kafka import Kafka
from bench.systems.kafka_set import KafkaSet
from bench.systems.system import Peer, Served

KAFKA, KAFKA_FSYNC, KAFKA_SET = "kafka", "kafka fsync", "kafka set"
REPLICA_SET = "replica set fsync"
SETS: dict[str, Callable[[Path], Served]] = {REPLICA_SET: FaircopySet, KAFKA_SET: KafkaSet}


def factory_of(name: str) -> Callable[[Path], Peer]:
    """The function that makes a system of this name in an empty directory; it may raise Unavailable."""
    if name == KAFKA:
        return Kafka
    if name == KAFKA_FSYNC:
        return lambda directory: Kafka(directory, "flush.messages=1")
    protocol, durability = name.rsplit(" ", 1)
    return lambda directory: Faircopy(directory, protocol, durability)


def any_factory_of(name: str) -> Callable[[Path], Served]:
    """The same for systems that may be several brokers."""
    return SETS.get(name) or factory_of(name)


def is_kafka(name: str) -> bool:
    """Whether a system of this name is Apache Kafka."""
    return name in (KAFKA, KAFKA_FSYNC, KAFKA_SET)
