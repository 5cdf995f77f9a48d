"""The job's input, written no faster than the job copies it: it has work at any time, and never all of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.flink.job import FlinkJob

AHEAD = 1500
"""So many messages the job may have before it, in its transactions, or committed and not seen yet."""
STEP = 100
"""So many messages are written at a time, rather than all that the last commit allows."""
PATIENCE_SECONDS = 240.0
"""After so long without a new message in the output, the job is taken to hang."""
CALL_SECONDS = 60.0  # of one call: it survives a restart of the broker on a busy machine
LOOK_SECONDS = 0.02


class Feed:
    """Writes 0, 1, 2 and so on to the job's source, and sees how many messages of its target are visible."""

    def __init__(self, broker: str, job: FlinkJob, partitions: int) -> None:
        self._job = job
        self._producer = Producer(
            {"bootstrap.servers": broker, "enable.idempotence": True, "log_level": 0, "linger.ms": 1}
        )
        self._consumer = Consumer({"bootstrap.servers": broker, "group.id": "feed", "log_level": 0})
        self._targets = [TopicPartition(job.target, number) for number in range(partitions)]
        self.written = 0
        self.visible = 0

    def until_visible(self, messages: int) -> None:
        """Write, and return when so many are visible."""
        self._until(lambda: self.visible >= messages, messages)

    def during(self, seconds: float, messages: int) -> None:
        """Write for so long, and at most as much as this in all."""
        end = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= end, messages)

    def _until(self, is_reached: Callable[[], bool], messages: int) -> None:
        grown = time.monotonic()
        while not is_reached():
            self._write(min(self.written + STEP, self.visible + AHEAD, messages))
            before, self.visible = self.visible, self._look()
            if self.visible > before:
                grown = time.monotonic()
            self._job.ensure_it_runs()
            assert time.monotonic() < grown + PATIENCE_SECONDS, (
                f"{self.visible} of {self.written} messages are visible, no more come; {self._job.end_of_log}"
            )
            time.sleep(LOOK_SECONDS)

    def _write(self, messages: int) -> None:
        """Have so many messages in the source."""
        for number in range(self.written, messages):
            partition = number % len(self._targets)  # each of the job's tasks has work
            self._producer.produce(self._job.source, b"%d" % number, partition=partition)
        left = self._producer.flush(CALL_SECONDS)
        assert left == 0, f"the broker did not take {left} messages within {CALL_SECONDS} s"
        self.written = max(self.written, messages)

    def _look(self) -> int:
        return sum(self._end(each) for each in self._targets)

    def _end(self, target: TopicPartition) -> int:
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            try:
                _, end = self._consumer.get_watermark_offsets(target, CALL_SECONDS)
            except KafkaException:  # the broker was killed meanwhile
                if time.monotonic() > deadline:
                    raise
            else:
                return int(end)

    def close(self) -> None:
        """Let the clients end."""
        self._consumer.close()
