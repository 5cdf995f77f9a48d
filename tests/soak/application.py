"""Transactions of one transactional.id: it reads, writes, and commits its offsets, instance after instance.

An instance crashes silently; or only seems to have crashed, and goes on beside its successor; or ends because
of an error from the broker. Its successor starts at the group's committed offset.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time

from tests.checker.history import Offset, Read, Result, Send
from tests.clients.adapter import Client, ClientFailed, Place, Producer
from tests.soak.consumer import RecordedConsumer
from tests.soak.dismissal import EXPECTED, dismiss
from tests.soak.record import Attempt, Recorder
from tests.soak.stage import PLACES, TRANSACTION_TIMEOUT_SECONDS, name_of

log = logging.getLogger(__name__)

ABORT_CHANCE = 0.1
POLL_CHANCE = 0.3
FLUSH_CHANCE = 0.3
ASK_CHANCE = 0.3
HANG_CHANCE = 0.004
# They commit even if messages were lost (kafka-python: those that it could not deliver in time, or that were
# in flight when it got a new epoch). Whoever wants to know must look at each message's future first.
FLUSHED_FIRST = ("aiokafka", "kafka-python")
ZOMBIE_CHANCE = 0.3
MICRO_OPERATIONS_MAX = 4
LIFE_SECONDS = 12.0  # on average
ZOMBIE_SECONDS = 10.0
PAUSE_SECONDS_MAX = 0.04
RETRY_SECONDS = 0.3
POLL_SECONDS = 0.02
TRANSACTION_ABORTABLE = 120


class Application:
    """One transactional.id, in an order (P5) that it shares with others; `place` is what it reads."""

    def __init__(
        self, client: Client, address: str, recorder: Recorder, transactional_id: str, place: Place, seed: int
    ) -> None:
        self.client = client
        self.address = address
        self.recorder = recorder
        self.transactional_id = transactional_id
        self.place = place
        self._chosen = random.Random(seed)

    @property
    def order(self) -> str:
        return self.transactional_id.split("/")[0]

    @property
    def group(self) -> str:
        """The consumer group whose offsets it commits, the same for all of its instances."""
        return f"of {self.transactional_id}"

    def run(self, name: str, is_over: threading.Event) -> None:
        """Run one instance at a time, except for zombies."""
        for number in itertools.count(1):
            if is_over.is_set():
                return
            instance = Instance(
                self, f"{name} {self.transactional_id}#{number}", self._chosen.getrandbits(48), is_over
            )
            thread = threading.Thread(target=instance.run, name=instance.name)
            thread.start()
            thread.join(self._chosen.expovariate(1 / LIFE_SECONDS))
            if self._chosen.random() >= ZOMBIE_CHANCE:
                instance.is_crashed = True
                thread.join()


class Instance:
    """One producer and its consumer."""

    def __init__(self, application: Application, name: str, seed: int, is_over: threading.Event) -> None:
        self.name = name
        self.is_crashed = False
        self._application = application
        self._chosen = random.Random(seed)
        self._is_over = is_over
        self._values = itertools.count(1)
        self._ends_at = time.monotonic() + 2 * LIFE_SECONDS + ZOMBIE_SECONDS

    def run(self) -> None:
        """Run until it crashes, is fenced, or meets an error from which it can't go on."""
        application = self._application
        try:
            producer = application.client.producer(
                application.address,
                transactional_id=application.transactional_id,
                timeout_ms=int(TRANSACTION_TIMEOUT_SECONDS * 1000),
            )
        except EXPECTED as error:
            log.info("%s does not start: %s", self.name, error)
            time.sleep(RETRY_SECONDS)
            return
        with dismiss(producer):
            try:
                producer.init()
                self._transactions(producer)
            except EXPECTED as error:
                log.info("%s ends: %s", self.name, error)
                time.sleep(RETRY_SECONDS)

    def _is_ending(self) -> bool:
        return self.is_crashed or self._is_over.is_set() or time.monotonic() > self._ends_at

    def _transactions(self, producer: Producer) -> None:
        application = self._application
        isolation = self._chosen.choice(["read_committed", "read_uncommitted"])
        made = application.client.consumer(application.address, group=application.group, isolation=isolation)
        with dismiss(made):
            consumer = RecordedConsumer(self.name, application.recorder, made)
            # The group's offset is settled only now that the last instance's transaction has ended.
            position = consumer.ask_committed(application.group, application.place) or 0
            consumer.assign({application.place: position})
            while not self._is_ending():
                time.sleep(self._chosen.random() * PAUSE_SECONDS_MAX)
                position = self._transaction(producer, consumer, position)

    def _transaction(self, producer: Producer, consumer: RecordedConsumer, position: int) -> int:
        """Run one transaction. Returns the position that is committed afterwards."""
        operations = [
            None if self._chosen.random() < POLL_CHANCE else self._new_send()
            for _ in range(self._chosen.randint(1, MICRO_OPERATIONS_MAX))
        ]
        sends = [operation for operation in operations if operation is not None]
        attempt = Attempt(
            self._application.recorder,
            self.name,
            self._application.order,
            [Send(name_of(place), value) for place, value in sends],
        )
        try:
            reads = self._write(producer, consumer, operations)
            is_wanted = self._chosen.random() >= ABORT_CHANCE
        except EXPECTED as error:
            log.info("%s aborts: %s", self.name, error)
            is_wanted = False
        if self.is_crashed:
            attempt.end(Result.FAILED)
            return position
        if not is_wanted:
            attempt.end(Result.FAILED)
            producer.abort()
        elif self._commit(attempt, producer, reads):
            self._ask(consumer, sends)
            return reads[-1].offset + 1 if reads else position
        consumer.assign({self._application.place: position})
        return position

    def _new_send(self) -> tuple[Place, str]:
        return self._chosen.choice(PLACES), f"{self.name}:{next(self._values)}"

    def _write(
        self, producer: Producer, consumer: RecordedConsumer, operations: list[tuple[Place, str] | None]
    ) -> list[Read]:
        """Do all of a transaction except its end. Returns what it read; the offsets of that go with it."""
        application = self._application
        reads: list[Read] = []
        producer.begin()
        for operation in operations:
            if self.is_crashed:
                return reads
            if operation is None:
                reads += consumer.poll(POLL_SECONDS)
            else:
                (topic, number), value = operation
                producer.send(topic, value.encode(), partition=number)
        if reads:
            producer.send_offsets(consumer.consumer, {application.place: reads[-1].offset + 1})
        if application.client.name in FLUSHED_FIRST or self._chosen.random() < FLUSH_CHANCE:
            producer.flush()
        if self._chosen.random() < HANG_CHANCE:
            time.sleep(TRANSACTION_TIMEOUT_SECONDS + 2)
        return reads

    def _commit(self, attempt: Attempt, producer: Producer, reads: list[Read]) -> bool:
        """Commit; False if it was aborted instead. Raises if nobody knows, or the producer can't go on."""
        application = self._application
        name = name_of(application.place)
        attempt.ask_commit(reads, [Offset(application.group, name, reads[-1].offset + 1)] if reads else [])
        try:
            producer.commit()
            attempt.end(Result.OK)
            return True
        except EXPECTED as error:
            log.info("%s can't commit %s: %s", self.name, attempt.transaction.begun, error)
            if not asks_to_abort(error):
                attempt.end(Result.UNKNOWN)
                raise
        try:
            producer.abort()
        except EXPECTED:
            attempt.end(Result.UNKNOWN)
            raise
        # A producer that was told to abort, and could, may send everything again: these messages must never
        # be seen.
        attempt.end(Result.FAILED)
        return False

    def _ask(self, consumer: RecordedConsumer, sends: list[tuple[Place, str]]) -> None:
        """Ask right after the ack where partitions end, and what the group has committed (P8)."""
        if self._chosen.random() < ASK_CHANCE:
            if sends:
                consumer.ask_end(self._chosen.choice(sends)[0])
            consumer.ask_committed(self._application.group, self._application.place)


def asks_to_abort(error: Exception) -> bool:
    return isinstance(error, ClientFailed) and (error.must_abort or error.code == TRANSACTION_ABORTABLE)
