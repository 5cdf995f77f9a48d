"""Systems by the names that the results use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.systems.faircopy import Faircopy
from bench.systems.kafka import Kafka
from bench.systems.system import Peer

KAFKA, KAFKA_FSYNC = "kafka", "kafka fsync"


def factory_of(name: str) -> Callable[[Path], Peer]:
    """The function that makes a system of this name in an empty directory; it may raise Unavailable."""
    if name == KAFKA:
        return Kafka
    if name == KAFKA_FSYNC:
        return lambda directory: Kafka(directory, "flush.messages=1")
    protocol, durability = name.rsplit(" ", 1)
    return lambda directory: Faircopy(directory, protocol, durability)


def is_kafka(name: str) -> bool:
    """Whether a system of this name is Apache Kafka."""
    return name in (KAFKA, KAFKA_FSYNC)
