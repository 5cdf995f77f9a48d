"""A plain consumer of the demo that checks everything: read_uncommitted, so that nothing is filtered for it.

    python -m demo.reader ADDRESS FLIGHTS

It reads both topics while they are written, until its standard input ends and it has read everything. Then it
reports whether it ever saw a message of an aborted transaction, the same message twice, or half a flight.
"""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from demo.flights import ARRIVALS, DEPARTURES, PARTITIONS, attempt_of, flight_id_of
from demo.worker import DOOMED, tell

REPORT_SECONDS = 0.25
POLLS = 5_000


class CheckingConsumer:
    """Reads and checks."""

    def __init__(self, address: str, flights: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "demo-reader",
                "isolation.level": "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        places = [
            TopicPartition(topic, number, 0)
            for topic in (DEPARTURES, ARRIVALS)
            for number in range(PARTITIONS)
        ]
        self._consumer.assign(places)
        self._attempts: dict[str, list[str | None]] = {
            DEPARTURES: [None] * flights,
            ARRIVALS: [None] * flights,
        }
        self._last_seen: dict[str, float] = {}
        self._at_end: set[tuple[str, int]] = set()
        self.messages = 0
        self.aborted_seen = 0
        self.twice_seen = 0

    def run(self) -> None:
        """Read to the end, and report."""
        next_report, is_last_round = 0.0, False
        while not (is_last_round and len(self._at_end) == 2 * PARTITIONS):
            # One by one: a batch call would wait for the whole batch, but we measure the lag here.
            for _ in range(POLLS):
                if (message := self._consumer.poll(0.05)) is None:
                    break
                self._take(message)
            if time.monotonic() >= next_report:
                tell(seen=self.messages)
                next_report = time.monotonic() + REPORT_SECONDS
            if not is_last_round and select.select([sys.stdin], [], [], 0)[0]:
                is_last_round = True
                self._at_end.clear()
                self._begin_last_round()
        self._consumer.close()
        tell(seen=self.messages)
        print(json.dumps({"final": self.verdict()}), flush=True)

    def _begin_last_round(self) -> None:
        """Everything is written now, so read up to the current ends."""
        for place in self._consumer.position(self._consumer.assignment()):
            _, end = self._consumer.get_watermark_offsets(place, 10)
            if place.offset >= end:
                self._at_end.add((place.topic, place.partition))

    def _take(self, message: Any) -> None:
        if message.error() is not None:
            if message.error().code() == KafkaError._PARTITION_EOF:
                self._at_end.add((message.topic(), message.partition()))
            return
        self._at_end.discard((message.topic(), message.partition()))
        value = message.value()
        attempt, flight_id = attempt_of(value), flight_id_of(value)
        self.messages += 1
        self.aborted_seen += attempt.endswith(DOOMED)
        attempts = self._attempts[message.topic()]
        self.twice_seen += attempts[flight_id] is not None
        attempts[flight_id] = attempt
        self._last_seen[attempt] = time.time()

    def verdict(self) -> dict[str, Any]:
        """What was seen."""
        pairs = list(zip(self._attempts[DEPARTURES], self._attempts[ARRIVALS], strict=True))
        return {
            "messages": self.messages,
            "flights": sum(left is not None and left == right for left, right in pairs),
            "half_flights": sum(left != right for left, right in pairs),
            "of_aborted": self.aborted_seen,
            "twice": self.twice_seen,
            "last_seen": self._last_seen,
        }


if __name__ == "__main__":
    CheckingConsumer(sys.argv[1], int(sys.argv[2])).run()
