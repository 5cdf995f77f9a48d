"""kill -9 of a real broker in the middle of transactions: nothing lost, nothing twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess, eventually
from tests.finding import a_finding_if_not
from tests.seeds import seed_for

Values = dict[str, list[list[bytes]]]
"""By topic and partition."""
TOPICS = ("left", "right")
WRITERS = 3
KILLS = 6
PARTITIONS = 2
PATIENCE_SECONDS = 30.0  # of one call: it survives a restart of the broker on a busy machine
JOIN_SECONDS = 2 * PATIENCE_SECONDS + 10


class Writer(threading.Thread):
    """Writes transactions over both topics, and remembers which were acked, aborted, or unknown."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._address = address
        self._id = f"kill/{number}"
        self._is_over = stop
        self.acked: list[str] = []
        self.aborted: list[str] = []
        self.unknown: list[str] = []
        self._written = 0

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._instance()
            except KafkaException:
                self._is_over.wait(0.05)

    def _instance(self) -> None:
        """One producer, until it fails for good."""
        producer = Producer(
            {
                "bootstrap.servers": self._address,
                "transactional.id": self._id,
                "transaction.timeout.ms": 20_000,
                "linger.ms": 0,
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )
        producer.init_transactions(PATIENCE_SECONDS)
        while not self._is_over.is_set():
            self._transaction(producer)

    def _transaction(self, producer: Producer) -> None:
        name = f"{self._id}:{self._written}"
        self._written += 1
        producer.begin_transaction()
        self.unknown.append(name)
        for part in range(4):
            for topic in TOPICS:
                producer.produce(topic, f"{name}:{part}".encode(), partition=part % PARTITIONS)
        if self._written % 7 == 0:
            producer.flush(PATIENCE_SECONDS)
            producer.abort_transaction(PATIENCE_SECONDS)
            self.aborted.append(self.unknown.pop())
        else:
            producer.commit_transaction(PATIENCE_SECONDS)
            self.acked.append(self.unknown.pop())


def read_all(address: str, topic: str, isolation: str) -> list[list[bytes]]:
    """All values of each partition, with contiguous offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"check-{isolation}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, "the reader waits in vain"
        if message.error() is not None:
            ended += 1
            continue
        partition, value = message.partition(), message.value()
        assert partition is not None and value is not None
        with a_finding_if_not():
            assert message.offset() == len(values[partition])
        values[partition].append(value)
    consumer.close()
    return values


@pytest.mark.parametrize(("durability", "shards"), [("fsync", 1), ("os", 1), ("fsync", 4)])
def test_kill_in_the_middle_of_transactions(tmp_path: Path, durability: str, shards: int) -> None:
    chance = random.Random(seed_for("kill in the middle of transactions"))
    settings = (f"durability={durability}", f"shards={shards}")
    with BrokerProcess(
        tmp_path, *settings, "checkpoint.bytes=65536", "journal.segment.bytes=1048576"
    ) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic(topic, PARTITIONS) for topic in TOPICS]).values():
            made.result(60)
        stop = threading.Event()
        writers = [Writer(broker.address, number, stop) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            await_commits(writers, chance.randint(1, 40))
            broker.restart(kill=chance.random() < 0.8)
        await_commits(writers, 20)
        stop.set()
        for writer in writers:
            writer.join(JOIN_SECONDS)
        assert sum(len(writer.acked) for writer in writers) > 20
        check(broker.address, writers)
        broker.restart()
        check(broker.address, writers)
        broker.ensure_no_traceback()


def await_commits(writers: Sequence[Writer], count: int) -> None:
    """Return when so many more transactions have been acknowledged."""
    enough = commits(writers) + count
    eventually(lambda: commits(writers) >= enough)


def commits(writers: Sequence[Writer]) -> int:
    return sum(len(writer.acked) for writer in writers)


def check(address: str, writers: Sequence[Writer]) -> None:
    """Every acked transaction is there once, whole and in order, and no aborted one is.

    An unknown one is there as a whole, or not at all.
    """
    plain = {topic: read_all(address, topic, "read_uncommitted") for topic in TOPICS}
    committed = {topic: read_all(address, topic, "read_committed") for topic in TOPICS}
    with a_finding_if_not():
        assert plain == committed
        ensure_whole_and_in_order(plain, writers)


def ensure_whole_and_in_order(plain: Values, writers: Sequence[Writer]) -> None:
    """Raise AssertionError if a transaction is not as its writer knows it, or not in the order of all."""
    found: dict[str, int] = {}
    for partitions in plain.values():
        for values in partitions:
            assert len(values) == len(set(values)), "a message stands twice"
            for value in values:
                name = value.decode().rsplit(":", 1)[0]
                found[name] = found.get(name, 0) + 1
    for writer in writers:
        assert all(found.get(name) == 4 * len(TOPICS) for name in writer.acked)
        assert not any(name in found for name in writer.aborted)
        assert all(found.get(name) in (None, 4 * len(TOPICS)) for name in writer.unknown)
    # P5: the writers are of one group, so all partitions show their transactions in one order.
    orders = [
        list(dict.fromkeys(value.decode().rsplit(":", 1)[0] for value in values))
        for partitions in plain.values()
        for values in partitions
    ]
    assert all(order == orders[0] for order in orders)
