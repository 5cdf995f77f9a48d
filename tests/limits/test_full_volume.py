"""A full volume frees itself: real files and a real state store, on a file system that is really full."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess, eventually
from tests.limits.small_disk import SmallDisk, small_disk

DISK_MIB = 128
MESSAGE = b"x" * 100_000
FILLS_MAX = 10
WAIT_SECONDS = 60.0
FULL = "until there is some"
OVER = "the disk has space again"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_MIB) as made:
        yield made


@pytest.fixture
def broker(disk: SmallDisk, tmp_path: Path) -> Iterator[BrokerProcess]:
    made = BrokerProcess(
        tmp_path,
        "journal.segment.bytes=4194304",
        "topic.segment.bytes=1048576",
        "plain.enabled=false",
        "durability=os",
        "retention.check.interval.ms=500",
    )
    made.data_directory = disk.path / "data"
    made.within = disk.inside
    with made:
        for topic in ("t", "u"):
            make_topic(made, topic)
        eventually(lambda: (disk.outside / "data" / "reserve").exists())
        yield made


def make_topic(broker: BrokerProcess, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, 1)])[name].result(WAIT_SECONDS)


def produce(broker: BrokerProcess, topic: str, messages: int, patience_ms: int = 1_000) -> int:
    """How many of so many messages are delivered."""
    told: list[bool] = []
    settings = {
        "bootstrap.servers": broker.address,
        "message.timeout.ms": patience_ms,
        "batch.num.messages": 1,
    }
    producer = Producer(settings)
    for _ in range(messages):
        producer.produce(topic, MESSAGE, on_delivery=lambda error, _message: told.append(error is None))
        producer.poll(0)
    assert producer.flush(WAIT_SECONDS) == 0
    return sum(told)


def fill(broker: BrokerProcess, topic: str) -> int:
    """Produce until nothing more is taken; how many messages were."""
    taken = 0
    while broker.log.count(FULL) == broker.log.count(OVER) or produce(broker, topic, 1):
        taken += produce(broker, topic, 50)
    return taken


def ends(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    """First and next offset."""
    low, high = reader(broker).get_watermark_offsets(TopicPartition(topic, 0), timeout=120)
    return int(low), int(high)


def reader(broker: BrokerProcess, group: str = "") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group or uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def read_one(broker: BrokerProcess, topic: str, offset: int) -> bytes | None:
    consumer = reader(broker)
    consumer.assign([TopicPartition(topic, 0, offset)])
    message = consumer.poll(WAIT_SECONDS)
    consumer.close()
    assert message is not None
    assert not message.error()
    value: bytes | None = message.value()
    return value


def delete_records(broker: BrokerProcess, topic: str, before: int) -> None:
    asked = TopicPartition(topic, 0, before)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_records([asked])[asked].result(WAIT_SECONDS)


def delete_topic(broker: BrokerProcess, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics([name])[name].result(WAIT_SECONDS)


def takes_messages(broker: BrokerProcess, topic: str) -> bool:
    return produce(broker, topic, 1, patience_ms=3_000) == 1


def test_a_full_volume_serves_and_frees_itself(broker: BrokerProcess, disk: SmallDisk) -> None:
    assert produce(broker, "u", 3, patience_ms=60_000) == 3
    taken = fill(broker, "t")
    assert taken > 100
    assert "No messages and no topics are taken until there is some" in broker.log

    # New data is refused, and all else goes on. What a checkpoint gives back is filled up first.
    taken_meanwhile = 0
    while takes_messages(broker, "u"):
        taken_meanwhile += 1
        assert taken_meanwhile < FILLS_MAX
        taken += fill(broker, "t")
    with pytest.raises(KafkaException):
        make_topic(broker, "v")
    low, high = ends(broker, "t")
    assert (low, high >= taken) == (0, True)
    assert ends(broker, "u") == (0, 3 + taken_meanwhile)
    assert read_one(broker, "t", high - 1) == MESSAGE
    consumer = reader(broker, "g")
    consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
    assert consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset == 7

    delete_records(broker, "t", high - 10)
    eventually(lambda: takes_messages(broker, "u"))
    assert "INFO the disk has space again" in broker.log
    assert (disk.outside / "data" / "reserve").exists()
    assert ends(broker, "t")[0] == high - 10


def test_retention_frees_a_full_volume(broker: BrokerProcess) -> None:
    fill(broker, "t")
    command = ["topics", "alter", "t", "--set", "retention.bytes=1048576"]
    run_command(broker, *command)
    eventually(lambda: takes_messages(broker, "u"))


def test_a_start_on_a_full_volume(broker: BrokerProcess, disk: SmallDisk) -> None:
    taken = fill(broker, "t")
    # What is still to be copied then waits for space, and so does whoever asks for the end.
    assert ends(broker, "t")[1] >= taken
    disk.fill()
    broker.restart()
    low, high = ends(broker, "t")
    assert high >= taken
    assert read_one(broker, "t", low) == MESSAGE
    delete_topic(broker, "t")
    eventually(lambda: takes_messages(broker, "u"))
    assert "CRITICAL" not in broker.log


def test_a_start_on_a_volume_that_others_have_filled(broker: BrokerProcess, disk: SmallDisk) -> None:
    assert produce(broker, "t", 200, patience_ms=60_000) == 200
    assert ends(broker, "t") == (0, 200)
    broker.kill()
    disk.fill()
    broker.start()
    assert ends(broker, "t") == (0, 200)
    assert not takes_messages(broker, "u") or (disk.outside / "data" / "reserve").exists()
    delete_topic(broker, "t")
    eventually(lambda: takes_messages(broker, "u"))


def test_a_commit_on_a_full_volume_is_read_or_refused(broker: BrokerProcess) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": "g/1", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce("u", MESSAGE)
    assert producer.flush(WAIT_SECONDS) == 0
    fill(broker, "t")
    producer.commit_transaction(WAIT_SECONDS)
    assert ends(broker, "u") == (0, 10)


def run_command(broker: BrokerProcess, *words: str) -> object:
    command = [sys.executable, "-m", "faircopy", *words, "--broker", broker.address]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
