"""Greets with Arroyo, as its tutorial has it: a consumer, a strategy of steps, a producer at the end.

Usage: arroyo_greet.py BROKER
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping

from arroyo.backends.kafka import KafkaConsumer, KafkaPayload, KafkaProducer
from arroyo.backends.kafka.configuration import (
    build_kafka_configuration,
    build_kafka_consumer_configuration,
)
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import (
    CommitOffsets,
    ProcessingStrategy,
    ProcessingStrategyFactory,
    Produce,
    RunTask,
)
from arroyo.types import Commit, Message, Partition, Topic

brokers = [sys.argv[1]]


def greet(message: Message[KafkaPayload]) -> KafkaPayload:
    """The answer to each message."""
    payload = message.payload
    return KafkaPayload(payload.key, b"hello " + payload.value, payload.headers)


class Greeting(ProcessingStrategyFactory[KafkaPayload]):
    """Consume, greet, produce, commit."""

    def __init__(self) -> None:
        self.producer = KafkaProducer(build_kafka_configuration({}, bootstrap_servers=brokers))

    def create_with_partitions(
        self, commit: Commit, partitions: Mapping[Partition, int]
    ) -> ProcessingStrategy[KafkaPayload]:
        return RunTask(greet, Produce(self.producer, Topic("greetings"), CommitOffsets(commit)))


configuration = build_kafka_consumer_configuration({}, bootstrap_servers=brokers, group_id="greeters")
processor = StreamProcessor(KafkaConsumer(configuration), Topic("names"), Greeting())

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: processor.signal_shutdown())
    processor.run()
