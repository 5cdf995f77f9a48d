"""A topic as the output of a foreign program: how much of it there is, and all of it, read at the end."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.ecosystem.outlet import LOOK_SECONDS, PATIENCE_SECONDS, Outlet

CALL_SECONDS = 60.0  # of one call: it survives a restart of the broker on a busy machine


class Ends(Outlet):
    """The messages of a topic, counted whatever happens to the broker meanwhile."""

    def __init__(self, broker: str, topic: str, partitions: int = 1) -> None:
        self._consumer = Consumer({"bootstrap.servers": broker, "group.id": "ends", "log_level": 0})
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]

    def count(self) -> int:
        """By the ends of the partitions: nothing but messages has an offset."""
        return sum(self._end(each) for each in self._partitions)

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
        if (error := message.error()) is not None:
            ended += error.code() == KafkaError._PARTITION_EOF
            continue
        number, offset = message.partition(), message.offset()
        assert number is not None and offset == nexts[number], f"P3: {offset} of {number} is not contiguous"
        nexts[number] += 1
        found.append(message)
    consumer.close()
    return found
