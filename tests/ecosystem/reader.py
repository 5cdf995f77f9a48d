"""Reads all of a topic, from its first message on, while a program writes it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.broker_process import eventually
from tests.ecosystem.program import ForeignProgram

CALL_SECONDS = 10.0
PATIENCE_SECONDS = 240.0
"""After so long a program is taken to hang: a group may wait a minute for a member that was killed."""
POLL_SECONDS = 0.2


class TopicReader:
    """Collects what is committed in a topic, which need not be there yet."""

    def __init__(self, broker: str, topic: str) -> None:
        settings = {"bootstrap.servers": broker, "group.id": "reader", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "log_level": 0})
        self._topic = topic
        self._is_assigned = False
        self.messages: list[Message] = []

    def until(self, is_enough: Callable[[], bool], program: ForeignProgram) -> None:
        """Read until this is so, while a program runs."""

        def look() -> bool:
            program.ensure_it_runs()
            self._read()
            return is_enough()

        try:
            eventually(look, PATIENCE_SECONDS)
        except AssertionError as error:
            raise AssertionError(
                f"{error}; {len(self.messages)} messages are there; {program.end_of_log}"
            ) from None

    def until_there_are(self, messages: int, program: ForeignProgram) -> None:
        """Read until there are so many."""
        self.until(lambda: len(self.messages) >= messages, program)

    def _read(self) -> None:
        if not self._is_assigned:
            self._assign()
            return
        for message in self._consumer.consume(1000, POLL_SECONDS):
            if message.error() is None:  # else the broker was killed meanwhile
                self.messages.append(message)

    def _assign(self) -> None:
        try:
            partitions = self._consumer.list_topics(self._topic, CALL_SECONDS).topics[self._topic].partitions
        except KafkaException:  # the broker was killed meanwhile
            return
        if partitions:
            self._consumer.assign([TopicPartition(self._topic, number, 0) for number in partitions])
            self._is_assigned = True

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()
