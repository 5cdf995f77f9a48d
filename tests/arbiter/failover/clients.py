"""Clients that write back to back and note what was acknowledged when, and one that reads all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

TRANSACTIONS, MESSAGES = "transactions", "messages"
PLACES = ((TRANSACTIONS, 0), (TRANSACTIONS, 1), (MESSAGES, 0))
ABORTED_EACH = 10
"""Each tenth transaction is aborted on purpose."""
IN_FLIGHT = 3
PAUSE_SECONDS = 0.005
TRY_SECONDS = 5.0
GIVEN_UP_SECONDS = 90.0
OPTIONS: dict[str, Any] = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 300,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 300,
    "topic.metadata.refresh.interval.ms": 2_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "log_level": 0,
}
Place = tuple[str, int]


class Outcome(Enum):
    """What came of a transaction or a message."""

    ACKED = "acked"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Unit:
    """A transaction, or a plain message; each number is used once. Times are of time.monotonic()."""

    kind: str
    number: int
    began: float
    ended: float
    outcome: Outcome
    wanted: bool = True
    """Whether the client wanted that outcome."""
    why: str = ""


class Writer:
    """A thread that writes. It makes a new producer if the last one can't go on."""

    kind = ""

    def __init__(self, addresses: str) -> None:
        self.units: list[Unit] = []
        self.failure = ""
        self._options: dict[str, Any] = OPTIONS | {"bootstrap.servers": addresses, "linger.ms": 0}
        self._number = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.kind)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def ask_to_end(self) -> None:
        """Begin nothing more."""
        self._is_over.set()

    def end(self) -> None:
        """Wait until what was begun has ended."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._write(Producer(self._options))
        except Exception as error:  # the run says so in the end
            self.failure = f"who writes {self.kind} has failed: {error!r}"

    def _write(self, producer: Producer) -> None:
        raise NotImplementedError

    def _note(
        self, number: int, began: float, outcome: Outcome, *, wanted: bool = True, why: object = ""
    ) -> None:
        ended = time.monotonic()
        self.units.append(Unit(self.kind, number, began, ended, outcome, wanted, str(why)))


class TransactionWriter(Writer):
    """Transactions of two messages in each of two partitions."""

    kind = TRANSACTIONS

    def __init__(self, addresses: str) -> None:
        super().__init__(addresses)
        self._options |= {"transactional.id": "failover", "transaction.timeout.ms": 60_000}

    def _write(self, producer: Producer) -> None:
        retried(lambda: producer.init_transactions(TRY_SECONDS))
        while not self._is_over.wait(PAUSE_SECONDS):
            self._number += 1
            if not self._transaction(producer, self._number):
                return

    def _transaction(self, producer: Producer, number: int) -> bool:
        """Returns whether the producer may go on."""
        began, is_wanted = time.monotonic(), number % ABORTED_EACH != 0
        try:
            producer.begin_transaction()
            for each in range(4):
                producer.produce(TRANSACTIONS, f"{number}.{each}".encode(), partition=each % 2)
            if is_wanted:
                retried(lambda: producer.commit_transaction(TRY_SECONDS))
                self._note(number, began, Outcome.ACKED)
            else:
                retried(lambda: producer.abort_transaction(TRY_SECONDS))
                self._note(number, began, Outcome.ABORTED)
        except KafkaException as error:
            return self._failed(producer, number, began, error)
        return True

    def _failed(self, producer: Producer, number: int, began: float, error: KafkaException) -> bool:
        outcome = Outcome.UNKNOWN
        try:
            if error.args[0].txn_requires_abort():
                retried(lambda: producer.abort_transaction(TRY_SECONDS))
                outcome = Outcome.ABORTED
        except KafkaException:
            outcome = Outcome.UNKNOWN
        self._note(number, began, outcome, wanted=False, why=error.args[0])
        return outcome is Outcome.ABORTED


def retried(call: Callable[[], object]) -> None:
    """Call it until it succeeds, as long as that may help. Raises KafkaException."""
    deadline = time.monotonic() + GIVEN_UP_SECONDS
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


class MessageWriter(Writer):
    """Plain messages of an idempotent producer, some of them in flight at a time."""

    kind = MESSAGES

    def __init__(self, addresses: str) -> None:
        super().__init__(addresses)
        self._options |= {"enable.idempotence": True, "message.timeout.ms": int(GIVEN_UP_SECONDS * 1000)}
        self._has_failed = False

    def _write(self, producer: Producer) -> None:
        self._has_failed = False
        while not self._has_failed and not self._is_over.wait(PAUSE_SECONDS):
            self._number += 1
            producer.produce(
                MESSAGES,
                str(self._number).encode(),
                partition=0,
                on_delivery=self._on_delivery(self._number, time.monotonic()),
            )
            producer.poll(0)
            while len(producer) >= IN_FLIGHT:
                producer.poll(0.1)
        producer.flush(GIVEN_UP_SECONDS)

    def _on_delivery(self, number: int, began: float) -> Callable[[Any, Message], None]:
        def delivered(error: Any, message: Message) -> None:
            if error is None:
                self._note(number, began, Outcome.ACKED)
            else:
                self._has_failed = True
                self._note(number, began, Outcome.UNKNOWN, wanted=False, why=error)

        return delivered


@dataclass(frozen=True)
class Read:
    """A message that was read."""

    offset: int
    value: str
    leader_epoch: int


class Reader:
    """A read_committed consumer of all places from their beginning, in a thread of its own."""

    def __init__(self, addresses: str) -> None:
        self.seen: dict[Place, list[Read]] = {place: [] for place in PLACES}
        self._consumer = Consumer(
            OPTIONS
            | {
                "bootstrap.servers": addresses,
                "group.id": "failover",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in PLACES])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(500, 0.2):
                if message.error() is None:
                    place = (str(message.topic()), int(message.partition() or 0))
                    self.seen[place].append(read_from(message))
        self._consumer.close()

    @property
    def counts(self) -> dict[Place, int]:
        """How many messages it has read."""
        return {place: len(found) for place, found in self.seen.items()}

    def end(self) -> None:
        """Stop reading."""
        self._is_over.set()
        self._thread.join()


def read_from(message: Any) -> Read:
    """What a consumer was given."""
    epoch = message.leader_epoch()
    return Read(message.offset(), message.value().decode(), -1 if epoch is None else epoch)
