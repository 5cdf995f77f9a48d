"""One transactional worker of the demo, a process of its own so that it can be killed.

    python -m demo.worker ADDRESS NUMBER END_OFFSET

It reads partition NUMBER of the flights, and writes a departure and an arrival for each. It commits its own
offset in the same transactions, so after a crash its successor continues exactly after the last commit. It
aborts some transactions on purpose, and reports what it does as lines of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from demo.flights import ARRIVALS, DEPARTURES, GROUP, PARTITIONS, SOURCE, arrival, departure

FLIGHTS_PER_TRANSACTION = 500
ABORT_EVERY = 8
SECONDS = 30.0
DOOMED = "doomed"


def tell(**event: Any) -> None:
    """Write one line for the parent."""
    print(json.dumps(event), flush=True)


class Worker:
    """Reads, writes, commits, and now and then aborts."""

    def __init__(self, address: str, number: int, end_offset: int) -> None:
        self._number = number
        self._end_offset = end_offset
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": f"{GROUP}-{number}",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "transactional.id": f"{GROUP}/{number}",
                "linger.ms": 20,
                "batch.num.messages": 2_000,
                "log_level": 0,
            }
        )
        self._life = str(time.time_ns())
        self._attempts = 0

    def run(self) -> None:
        """Work until the partition's end."""
        # This fences a predecessor and aborts its transaction, before we fetch its offset.
        self._producer.init_transactions(SECONDS)
        offset = self._committed()
        # A predecessor may have been killed after a commit and before it told of it.
        tell(offset=offset)
        while offset < self._end_offset:
            offset = self._transaction(offset)
        self._consumer.close()

    def _committed(self) -> int:
        place = TopicPartition(SOURCE, self._number)
        (committed,) = self._consumer.committed([place], SECONDS)
        offset = max(int(committed.offset), 0)
        self._consumer.assign([TopicPartition(SOURCE, self._number, offset)])
        return offset

    def _transaction(self, offset: int) -> int:
        self._attempts += 1
        is_doomed = self._attempts % ABORT_EVERY == 0
        attempt = f"{self._number}-{self._life}-{self._attempts}" + (f"-{DOOMED}" if is_doomed else "")
        wanted = min(FLIGHTS_PER_TRANSACTION, self._end_offset - offset)
        messages = self._read(wanted)
        self._producer.begin_transaction()
        for message in messages:
            self._write(json.loads(message.value()), attempt)
        if is_doomed:
            self._producer.flush(SECONDS)
            self._producer.abort_transaction(SECONDS)
            self._consumer.seek(TopicPartition(SOURCE, self._number, offset))
            tell(aborted=attempt, flights=wanted)
            return offset
        self._commit(attempt, offset + wanted)
        return offset + wanted

    def _read(self, wanted: int) -> list[Any]:
        messages: list[Any] = []
        while len(messages) < wanted:
            found = self._consumer.consume(wanted - len(messages), 1.0)
            messages += [message for message in found if message.error() is None]
        return messages

    def _write(self, flight: dict[str, Any], attempt: str) -> None:
        partition = flight["flight_id"] % PARTITIONS
        for topic, message in (
            (DEPARTURES, departure(flight, attempt)),
            (ARRIVALS, arrival(flight, attempt)),
        ):
            while True:
                try:
                    self._producer.produce(topic, message, flight["carrier"], partition=partition)
                    break
                except BufferError:
                    self._producer.poll(0.05)

    def _commit(self, attempt: str, offset: int) -> None:
        self._producer.send_offsets_to_transaction(
            [TopicPartition(SOURCE, self._number, offset)], self._consumer.consumer_group_metadata(), SECONDS
        )
        self._producer.flush(SECONDS)
        begin = time.perf_counter()
        self._producer.commit_transaction(SECONDS)
        commit_ms = (time.perf_counter() - begin) * 1000
        tell(committed=attempt, offset=offset, commit_ms=commit_ms, acked_at=time.time())


if __name__ == "__main__":
    Worker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run()
