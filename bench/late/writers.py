"""Applications that write in transactions through librdkafka, and note what it tells them."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Any

from confluent_kafka import KafkaException, Producer

from bench.late.verdict import Attempt, Told
from bench.load.clients import common

PARTITIONS = 4
MESSAGES_MAX = 3
"""In each partition of a transaction; at least one."""
ABORT_CHANCE = 0.15
"""So many applications change their minds, while messages are under way."""
CALL_SECONDS = 30.0
SETTINGS: dict[str, Any] = {"linger.ms": 0, "transaction.timeout.ms": 60_000}


QUIET = logging.getLogger("bench.late.librdkafka")
"""librdkafka would write its fatal errors between progress and table, whatever its `log_level`."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Writer(threading.Thread):
    """One application with a transactional id of its own, until it is told to end, or a `failure`."""

    def __init__(self, address: str, topic: str, number: int, seed: int) -> None:
        super().__init__(name=f"writer {number}")
        self.attempts: list[Attempt] = []
        self.failure: BaseException | None = None
        self._address = address
        self._topic = topic
        self._number = number
        self._chosen = random.Random(f"{seed}/{number}")
        self._is_to_end = threading.Event()
        self._producer: Producer | None = None

    def end(self) -> None:
        """Have the thread end after the transaction at hand."""
        self._is_to_end.set()

    def run(self) -> None:
        try:
            while not self._is_to_end.is_set():
                self._transact()
            # Another instance: whatever is still open is aborted.
            self._producer = self._begin_anew()
        except BaseException as error:
            self.failure = error

    def _transact(self) -> None:
        """One transaction. An instance that can't go on is replaced by another one, as its error asks for."""
        if self._producer is None:
            self._producer = self._begin_anew()
        attempt = Attempt()
        self.attempts.append(attempt)
        try:
            self._producer.begin_transaction()
            self._send(self._producer, attempt)
            wants_abort = self._chosen.random() < ABORT_CHANCE
            if not wants_abort and self._commit(self._producer):
                attempt.told = Told.COMMITTED
            else:
                self._abort(self._producer)
                attempt.told = Told.ABORTED
        except KafkaException:
            self._producer = None

    def _begin_anew(self) -> Producer:
        name = f"late/{self._number}"
        producer = Producer(common(self._address) | SETTINGS | {"transactional.id": name}, logger=QUIET)
        deadline = time.monotonic() + CALL_SECONDS * 4
        while True:
            try:
                producer.init_transactions(CALL_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return producer

    def _send(self, producer: Producer, attempt: Attempt) -> None:
        name = f"{self._number}/{len(self.attempts)}"
        for partition in range(PARTITIONS):
            for _ in range(self._chosen.randint(1, MESSAGES_MAX)):
                message = f"{name}/{len(attempt.messages)}"
                producer.produce(self._topic, message, partition=partition)
                attempt.messages.append(message)
                producer.poll(0)
            # Messages take a while to come about, so a transaction is open for longer than one request.
            time.sleep(self._chosen.random() * 0.02)

    def _commit(self, producer: Producer) -> bool:
        """Whether it is committed. If not, it has to be aborted. Raises KafkaException."""
        while True:
            try:
                producer.commit_transaction(CALL_SECONDS)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    return False
                if not error.args[0].retriable():
                    raise
            else:
                return True

    def _abort(self, producer: Producer) -> None:
        while True:
            try:
                producer.abort_transaction(CALL_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return
