"""The check of a protocol before it is timed: readers see all committed transactions, once, in order."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from faircopy.errors import FaircopyError

PARTITIONS = 4
PRODUCERS = 3
TRANSACTIONS = 40
LARGE_BYTES = 60_000
READ_SECONDS_MAX = 60.0


class Incorrect(FaircopyError):
    """A protocol showed a reader something that it must not show, or hid something."""


class Sent(NamedTuple):
    """The committed values by partition and producer, in the order of their sends; and all aborted values."""

    committed: dict[tuple[int, int], list[bytes]]
    aborted: set[bytes]


def check(address: str, seed: int, *, may_abort: bool = True) -> int:
    """Commit and abort at random from several producers at once, and read everything. Returns how many
    messages were read.

    `may_abort` is false for a system that has no transactions. Raises Incorrect.
    """
    topic = f"correctness-{seed}"
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
    sent = Sent(defaultdict(list), set())
    # It hangs open while the others come and go, in the middle of their messages, and commits last.
    hanging = producer_of(address, f"correctness-{seed}-hanging")
    hanging.begin_transaction()
    values = [(partition, b"hanging-%d" % partition) for partition in range(PARTITIONS)]
    for partition, value in values:
        hanging.produce(topic, value, partition=partition)
    hanging.flush(30)
    note(sent, PRODUCERS, values)
    with ThreadPoolExecutor(PRODUCERS) as pool:
        running = [
            pool.submit(run, address, topic, number, seed, sent, may_abort) for number in range(PRODUCERS)
        ]
        for producer in running:
            producer.result()
    hanging.commit_transaction(30)
    read = read_all(address, topic, sum(map(len, sent.committed.values())))
    compare(sent, read)
    admin.delete_topics([topic])[topic].result(30)
    return sum(map(len, read.values()))


def producer_of(address: str, transactional_id: str) -> Producer:
    """A producer that is ready for transactions."""
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": transactional_id, "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(60)
    return producer


def run(address: str, topic: str, number: int, seed: int, sent: Sent, may_abort: bool) -> None:
    """Transactions of one producer: small and large, over some of the partitions, in one send or several."""
    chance = random.Random(seed * 1_000 + number)
    producer = producer_of(address, f"{topic}-{number}")
    for transaction in range(TRANSACTIONS):
        is_aborted = may_abort and chance.random() < 0.3
        padding = b"x" * (LARGE_BYTES if chance.random() < 0.1 else 10)
        values = [
            (chance.randrange(PARTITIONS), b"%d-%d-%d-" % (number, transaction, message) + padding)
            for message in range(chance.randint(1, 12))
        ]
        producer.begin_transaction()
        for partition, value in values:
            producer.produce(topic, value, partition=partition)
        if chance.random() < 0.5:
            producer.flush(30)
        if not is_aborted and has_committed(producer):
            note(sent, number, values)
        else:
            sent.aborted.update(value for _, value in values)
            producer = after_abort(producer, address, f"{topic}-{number}")


def after_abort(producer: Producer, address: str, transactional_id: str) -> Producer:
    """Abort. Returns the producer to go on with: another one if the client takes a refused abort for final.

    librdkafka does, when an abort overtakes the registration of the transaction's partitions
    (https://github.com/confluentinc/librdkafka/issues/4849).
    """
    try:
        producer.abort_transaction(60)
    except KafkaException as error:
        refusal = error.args[0]
        if not (refusal.fatal() and refusal.code() == KafkaError.INVALID_TXN_STATE):
            raise
        return producer_of(address, transactional_id)
    return producer


def has_committed(producer: Producer) -> bool:
    """Commit; false if the client asks to abort instead, as any application must be ready for."""
    try:
        producer.commit_transaction(60)
        return True
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        return False


def note(sent: Sent, number: int, values: list[tuple[int, bytes]]) -> None:
    """These values, by partition, are committed by producer `number`."""
    for partition, value in values:
        sent.committed[partition, number].append(value)


def read_all(address: str, topic: str, expected: int) -> dict[int, list[bytes]]:
    """All values by partition, up to the end that the broker reports."""
    consumer = Consumer(
        {
            "bootstrap.servers": address, "group.id": topic, "isolation.level": "read_committed",
            "log_level": 0,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    read: dict[int, list[bytes]] = defaultdict(list)
    deadline = time.monotonic() + READ_SECONDS_MAX
    ended: set[int] = set()
    # The last markers may come after the ack: an end counts only when all expected messages have arrived.
    while (
        len(ended) < PARTITIONS or sum(map(len, read.values())) < expected
    ) and time.monotonic() < deadline:
        for message in consumer.consume(1_000, 0.5):
            error, partition, value = message.error(), message.partition(), message.value()
            assert partition is not None
            if error is None:
                assert value is not None
                read[partition].append(value)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
            else:
                raise KafkaException(error)
    consumer.close()
    return read


def compare(sent: Sent, read: dict[int, list[bytes]]) -> None:
    """Raises Incorrect."""
    for partition in range(PARTITIONS):
        values = read[partition]
        shown = sent.aborted.intersection(values)
        if shown:
            raise Incorrect(f"partition {partition} shows {len(shown)} messages of aborted transactions")
        for number in range(PRODUCERS + 1):
            expected = sent.committed[partition, number]
            ours = set(expected)
            found = [value for value in values if value in ours]
            if found != expected:
                raise Incorrect(
                    f"partition {partition} shows {len(found)} messages of producer {number}, not the "
                    f"{len(expected)} that it committed, once and in order"
                )
        strangers = len(values) - sum(
            len(sent.committed[partition, number]) for number in range(PRODUCERS + 1)
        )
        if strangers:
            raise Incorrect(f"partition {partition} shows {strangers} messages that nobody sent")
