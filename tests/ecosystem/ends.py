"""How far a foreign program has come, seen from its output; and all of that output, read at the end."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

PATIENCE_SECONDS = 420.0
"""After so long without a new message in the output, the program is taken to hang."""
CALL_SECONDS = 60.0  # of one call: it survives a restart of the broker on a busy machine
LOOK_SECONDS = 0.02


class Ends:
    """How many messages of a topic are visible, whatever happens to the broker meanwhile."""

    def __init__(self, broker: str, topic: str, partitions: int = 1) -> None:
        self._consumer = Consumer({"bootstrap.servers": broker, "group.id": "ends", "log_level": 0})
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self.visible = 0

    def look(self) -> int:
        """Count them now: nothing but messages has an offset."""
        self.visible = sum(self._end(each) for each in self._partitions)
        return self.visible

    def _end(self, partition: TopicPartition) -> int:
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            try:
                _, end = self._consumer.get_watermark_offsets(partition, CALL_SECONDS)
            except KafkaException:  # the broker was killed meanwhile, or the topic is not there yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_SECONDS)
            else:
                return int(end)

    def until(self, is_reached: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        """Look, and call `meanwhile`, until it is reached. Raises AssertionError if none come for long."""
        grown = time.monotonic()
        while not is_reached():
            meanwhile()
            before = self.visible
            if self.look() > before:
                grown = time.monotonic()
            assert time.monotonic() < grown + PATIENCE_SECONDS, f"{self.visible} are visible, no more come"
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Let the client end."""
        self._consumer.close()


def read_all_of(
    broker: str, topic: str, partitions: int = 1, isolation: str = "read_committed"
) -> list[Message]:
    """All messages of a topic, in the order of each partition. Their offsets are contiguous."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": f"check-{isolation}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ended = list[Message](), 0
    nexts = [0] * partitions
    while ended < partitions:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, "the reader waits in vain"
        if message.error() is not None:
            ended += 1
            continue
        number, offset = message.partition(), message.offset()
        assert number is not None and offset == nexts[number], f"P3: {offset} of {number} is not contiguous"
        nexts[number] += 1
        found.append(message)
    consumer.close()
    return found
