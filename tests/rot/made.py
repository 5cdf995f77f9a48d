"""A data directory with something of everything in it, made by a real broker and real clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.catalogue.journal import catalogue_directory
from faircopy.catalogue.topics import Topic, Topics
from faircopy.publish.files import Files
from faircopy.storage.state_store import StateStore
from faircopy.verify.shared_journals import CatalogueCheck
from tests.broker_process import BrokerProcess, eventually

SETTINGS = (
    "journal.segment.bytes=1048576",
    "metadata.journals=2",
    "offsets.partitions=2",
    "plain.interval.ms=50",
    "auto.create.topics=false",
)
TOPICS = {"orders": 2, "audit": 1, "bulk": 2}
LARGE_BYTES = 90_000
Content = dict[tuple[str, int], list[bytes]]


class Made:
    """The directory, and the messages that each partition has."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.content: Content = {}

    def broker(self, *more: str) -> BrokerProcess:
        """A broker on it, not yet started."""
        return BrokerProcess(self.directory, *SETTINGS, *more)

    def files(self, part: str, topic: str, partition: int) -> list[Path]:
        """The files of one partition's journal or log."""
        return sorted((self.data / part).glob(f"{topic}.*/{partition}/*"))


def topics_of(store: StateStore) -> dict[str, Topic]:
    """The topics in the catalogue of the directory that has this state store."""
    check = CatalogueCheck(catalogue_directory(store._path.parent / "journal"), store, lambda _bytes: None)
    assert list(check.run()) == []
    return {topic.name: topic for topic in Topics(check.catalogue).load()}


def identity(store: StateStore, topic: str, partition: int) -> bytes:
    """What names a partition in the state store and in its journal."""
    topics = topics_of(store)
    return topics[topic].partition_id(partition).identity


def make(directory: Path, *, kill: bool, settings: Iterable[str] = ()) -> Made:
    """Run a broker for a while, and end it in order or with kill -9."""
    made = Made(directory)
    with made.broker(*settings) as broker:
        create_topics(broker.address)
        write(broker.address, lambda count: eventually(lambda: is_published(made, "audit", count)))
        made.content = {
            (topic, partition): read(broker.address, topic, partition)
            for topic, partitions in TOPICS.items()
            for partition in range(partitions)
        }
        eventually(lambda: is_published(made, "audit", len(made.content["audit", 0])))
        if kill:
            broker.kill()
    # The publisher of a killed broker may need some moments to end.
    eventually(
        lambda: not any(Files().is_locked(lock) for lock in (made.data / "plain").glob("*/_faircopy.lock"))
    )
    return made


def create_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(name, count, config={"segment.bytes": "16384"}) for name, count in TOPICS.items()]
    for made in admin.create_topics(topics).values():
        made.result(60)


def write(address: str, await_published: Callable[[int], object]) -> None:
    """Transactions that commit, one that aborts, one that stays open, plain messages, offsets of a group.

    The table `audit` gets several files: `await_published` returns when it has so many rows.
    """
    plain = Producer({"bootstrap.servers": address, "linger.ms": 0})
    open_one = transactional(address, "open/1")
    open_one.begin_transaction()
    for partition in range(2):
        open_one.produce("orders", b"open" * 20, partition=partition)
    open_one.produce("bulk", b"open" * 20, partition=0)
    open_one.flush(60)
    group = Consumer({"bootstrap.servers": address, "group.id": "group", "enable.auto.commit": False})
    group.assign([TopicPartition("orders", 0, 0)])
    producer = transactional(address, "orders/1")
    for number in range(12):
        producer.begin_transaction()
        for message in range(6):
            producer.produce(
                "orders", b"%d.%d " % (number, message) * 60, b"key", message % 2, headers=[("h", b"v")]
            )
        producer.produce("audit", b"%d " % number * 10, partition=0)
        offsets = [TopicPartition("orders", 0, number)]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 60)
        producer.flush(60)  # or an abort might come before anything was sent
        if number % 6 == 5:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
        plain.produce("orders", b"plain %d" % number * 40, partition=number % 2)
        plain.flush(60)
        if number % 4 == 0:
            await_published(number + 1 - number // 6)
    for number in range(14):
        plain.produce("bulk", bytes([number]) * LARGE_BYTES, partition=number % 2)
        plain.produce("bulk", bytes([number]) * LARGE_BYTES, partition=number % 2)
        plain.flush(60)
    group.commit(offsets=[TopicPartition("audit", 0, 3)], asynchronous=False)
    group.close()


def transactional(address: str, name: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": name, "log_level": 0, "linger.ms": 0}
    )
    producer.init_transactions(60)
    return producer


def read(address: str, topic: str, partition: int) -> list[bytes]:
    """All messages of a partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    place = TopicPartition(topic, partition, 0)
    consumer.assign([place])
    _, end = consumer.get_watermark_offsets(place, 60)
    found: list[bytes] = []
    while len(found) < end:
        message = consumer.poll(60)
        assert message is not None and message.error() is None, message and message.error()
        value = message.value()
        assert value is not None
        found.append(value)
    consumer.close()
    return found


def is_published(made: Made, table: str, count: int) -> bool:
    """Whether a table with one partition holds so many messages."""
    return any((made.data / "plain" / table).glob(f"d-*..{count - 1}.*.parquet"))
