"""How `format_*.tar.gz` were made: data directories of each older format, one after kill -9 and one after an
orderly stop.

Run it with a faircopy that writes the format, such as commit 37b53f5 for 3, 8d856aa for 4, 4a69724 for 5,
527b929 for 6, and b1287c2 for 7:

    git worktree add ../format-3 37b53f5
    cp tests/upgrade/make_old_directory.py ../format-3/tests/ && cd ../format-3
    python -m tests.make_old_directory DIRECTORY
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.storage.data_directory import FORMAT
from tests.broker_process import BrokerProcess

TOPICS = {"orders": 2, "audit": 1, "bulk": 1}
FOR_EVER_MS = "2147483647"
SETTINGS = (
    "journal.segment.bytes=1048576",
    "metadata.journals=2",
    "offsets.partitions=2",
    "plain.enabled=false",
    "disk.reserve.bytes=0",
    "auto.create.topics=false",
    f"transaction.max.timeout.ms={FOR_EVER_MS}",
    f"transactional.id.expiration.ms={FOR_EVER_MS}",
    f"offsets.retention.ms={FOR_EVER_MS}",
)
TRANSACTIONS = 40
BULK = 40
BULK_BYTES = 60_000
OPEN = ("orders", "audit")


def make(directory: Path, *, kill: bool) -> None:
    """A broker's directory, in a tar file with what clients know of it."""
    with BrokerProcess(directory, *SETTINGS) as broker:
        create_topics(broker.address)
        open_one = transactional(broker.address, "open/1")
        open_one.begin_transaction()
        for topic in OPEN:
            open_one.produce(topic, b"open 1", partition=0)
        open_one.flush(60)
        write(broker.address)
        open_one.produce(OPEN[0], b"open 2", partition=0)
        open_one.flush(60)
        known = {"killed": kill, "content": read_all(broker.address), "offset": committed(broker.address)}
        broker.kill() if kill else broker.stop()
    (directory / "known.json").write_text(json.dumps(known))
    name = f"format_{FORMAT}_{'killed' if kill else 'stopped'}.tar.gz"
    with tarfile.open(directory / name, "w:gz") as archive:
        for part in ("known.json", "data"):
            archive.add(directory / part, part, filter=anonymous)


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member that says nothing of the machine on which it was made."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def create_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(name, count, config={"retention.ms": "-1"}) for name, count in TOPICS.items()]
    for made in admin.create_topics(topics).values():
        made.result(60)


def transactional(address: str, name: str) -> Producer:
    settings: dict[str, Any] = {"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0}
    producer = Producer(settings | {"transaction.timeout.ms": int(FOR_EVER_MS)})
    producer.init_transactions(60)
    return producer


def write(address: str) -> None:
    """Transactions that commit and some that abort, offsets in them, plain messages, and more than one
    segment.
    """
    plain = Producer({"bootstrap.servers": address, "linger.ms": 0})
    group = Consumer({"bootstrap.servers": address, "group.id": "group", "enable.auto.commit": False})
    producer = transactional(address, "orders/1")
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for message in range(4):
            producer.produce("orders", b"%d.%d" % (number, message), b"key", message % 2)
        producer.produce("audit", b"%d" % number, partition=0)
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 0, number)], group.consumer_group_metadata(), 10
        )
        producer.flush(60)
        if number % 6 == 5:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
        plain.produce("orders", b"plain %d" % number, partition=number % 2)
        plain.flush(60)
    for number in range(BULK):
        plain.produce("bulk", bytes([number]) * BULK_BYTES, partition=0)
        plain.flush(60)
    group.close()


def read_all(address: str) -> dict[str, list[str]]:
    """All messages by partition, in hexadecimal and cut after some bytes."""
    return {
        f"{topic}-{partition}": [message[:32].hex() for message in read(address, topic, partition)]
        for topic, partitions in TOPICS.items()
        for partition in range(partitions)
    }


def read(address: str, topic: str, partition: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    place = TopicPartition(topic, partition, 0)
    consumer.assign([place])
    _, end = consumer.get_watermark_offsets(place, 60)
    found: list[bytes] = []
    while len(found) < end:
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        value = message.value()
        assert value is not None
        found.append(value)
    consumer.close()
    return found


def committed(address: str) -> int:
    """The group's offset of orders-0."""
    group = Consumer({"bootstrap.servers": address, "group.id": "group", "enable.auto.commit": False})
    (found,) = group.committed([TopicPartition("orders", 0)], 10)
    group.close()
    return int(found.offset)


if __name__ == "__main__":
    for is_killed in (True, False):
        place = Path(sys.argv[1]) / ("killed" if is_killed else "stopped")
        place.mkdir(parents=True)
        make(place, kill=is_killed)
