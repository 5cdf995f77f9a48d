"""Plain tables of a real broker: whole transactions only, each row once, whatever is killed on the way."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as parquet
import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.publish.files import Files
from faircopy.publish.live_files import NoTableError, live_files
from tests.broker_process import BrokerProcess, environment, eventually
from tests.seeds import seed_for

TRANSACTIONS = 120
PARTITIONS = 2


def make_topics(address: str, *names: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    for made in admin.create_topics([NewTopic(name, PARTITIONS, config=settings) for name in names]).values():
        made.result(60)


def published(directory: Path, table: str) -> list[dict[str, Any]]:
    """The rows that Spark would read: those of the files in the table's log."""
    rows: list[dict[str, Any]] = []
    try:
        paths = live_files(Files(), directory / "plain" / table)
    except NoTableError:
        return []
    for path in paths:
        # pyarrow opens a path twice: a file may be replaced between its footer and its rows.
        whole = io.BytesIO(path.read_bytes())
        rows += parquet.read_table(
            whole, columns=["value", "topic", "partition", "offset", "txid"]
        ).to_pylist()
    return rows


def publisher_of(broker: BrokerProcess) -> psutil.Process | None:
    """The publisher's process, if it runs."""
    for child in psutil.Process(broker.pid).children():
        with contextlib.suppress(psutil.Error):  # it may be ending just now
            if "faircopy.publish" in child.cmdline():
                return child
    return None


@pytest.mark.parametrize(("durability", "shards"), [("fsync", 3), ("os", 1)])
def test_a_shared_table_over_kills_of_broker_and_publisher(
    tmp_path: Path, durability: str, shards: int
) -> None:
    chance = random.Random(seed_for("a shared table over kills"))
    settings = [
        f"durability={durability}",
        f"shards={shards}",
        "plain.interval.ms=60",
        "checkpoint.bytes=65536",
    ]
    with BrokerProcess(tmp_path, *settings) as broker:
        make_topics(broker.address, "left", "right", plain_table="both")
        acked: list[int] = []
        producer: Producer | None = None
        for number in range(TRANSACTIONS):
            if chance.random() < 0.06:
                broker.restart()
            if chance.random() < 0.06 and (publisher := publisher_of(broker)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(publisher.pid, signal.SIGKILL)
            producer = write(broker.address, producer, number, acked)
            check_whole(published(broker.data_directory, "both"))
        assert len(acked) > TRANSACTIONS // 2
        eventually(lambda: everything_published(broker, acked))
        broker.restart()
        write(broker.address, None, TRANSACTIONS, acked)
        eventually(lambda: everything_published(broker, acked))


def write(address: str, producer: Producer | None, number: int, acked: list[int]) -> Producer | None:
    """One transaction of four messages over both topics; the producer, or None when it is lost."""
    try:
        if producer is None:
            producer = Producer(
                {"bootstrap.servers": address, "transactional.id": "plain", "linger.ms": 0, "log_level": 0}
            )
            producer.init_transactions(60)
        producer.begin_transaction()
        for part in range(4):
            topic = "left" if part % 2 else "right"
            producer.produce(topic, f"{number}:{part}", partition=(number + part // 2) % PARTITIONS)
        if is_aborted(number):
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            acked.append(number)
        return producer
    except KafkaException:
        return None


def is_aborted(number: int) -> bool:
    """Whether the producer aborts its transaction of this number."""
    return number % 9 == 0


def check_whole(rows: list[dict[str, Any]]) -> None:
    """No message twice, none of an abort, no half of a transaction, at any moment."""
    values = [row["value"] for row in rows]
    assert len(values) == len(set(values))
    assert not any(is_aborted(int(value.split(b":")[0])) for value in values)
    parts: dict[str, int] = {}
    for row in rows:
        parts[row["txid"]] = parts.get(row["txid"], 0) + 1
    assert set(parts.values()) <= {4}


def everything_published(broker: BrokerProcess, acked: list[int]) -> bool:
    rows = published(broker.data_directory, "both")
    check_whole(rows)
    found = {int(row["value"].split(b":")[0]) for row in rows}
    for topic, partition in {(row["topic"], row["partition"]) for row in rows}:
        offsets = sorted(
            row["offset"] for row in rows if (row["topic"], row["partition"]) == (topic, partition)
        )
        assert offsets == list(range(len(offsets)))
    return set(acked) <= found


def test_a_table_can_be_turned_off_and_goes_with_its_topic(fresh_broker: BrokerProcess) -> None:
    address, plain = fresh_broker.address, fresh_broker.data_directory / "plain"
    make_topics(address, "on")
    make_topics(address, "off", plain_enabled="false")
    producer = Producer({"bootstrap.servers": address})
    for topic in ("on", "off"):
        producer.produce(topic, b"x", partition=0)
    producer.flush()
    eventually(lambda: len(published(fresh_broker.data_directory, "on")) == 1)
    assert not (plain / "off").exists()
    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_topics(["on"])["on"].result(60)
    eventually(lambda: not (plain / "on").exists())
    make_topics(address, "on")
    producer.produce("on", b"new", partition=0)
    producer.flush()
    eventually(lambda: [row["value"] for row in published(fresh_broker.data_directory, "on")] == [b"new"])
    assert not (plain / "off").exists()


def test_the_publisher_ends_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "plain.idle.ms=3000", "plain.interval.ms=50") as broker:
        make_topics(broker.address, "t")
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce("t", b"1", partition=0)
        producer.flush()
        eventually(lambda: publisher_of(broker))
        eventually(lambda: len(published(broker.data_directory, "t")) == 1)
        eventually(lambda: publisher_of(broker) is None)
        producer.produce("t", b"2", partition=0)
        producer.flush()
        eventually(lambda: len(published(broker.data_directory, "t")) == 2)


def test_deleted_records_leave_the_table(tmp_path: Path) -> None:
    """Also when nothing is published any more. With plain.retention.ms=-1 they stay."""
    with BrokerProcess(tmp_path, "plain.interval.ms=50", "plain.grace.ms=1000") as broker:
        make_topics(broker.address, "goes")
        make_topics(broker.address, "stays", plain_retention_ms="-1")
        producer = Producer({"bootstrap.servers": broker.address})
        for topic in ("goes", "stays"):
            producer.produce(topic, b"1", partition=0)
        producer.flush()
        eventually(lambda: len(published(broker.data_directory, "goes")) == 1)
        eventually(lambda: len(published(broker.data_directory, "stays")) == 1)
        admin = AdminClient({"bootstrap.servers": broker.address})
        for deleted in admin.delete_records(
            [TopicPartition(topic, 0, 1) for topic in ("goes", "stays")]
        ).values():
            deleted.result(60)
        eventually(lambda: published(broker.data_directory, "goes") == [])
        files = broker.data_directory / "plain" / "goes"
        eventually(lambda: [path.name for path in files.glob("d-*..*.parquet")] == [])
        assert len(published(broker.data_directory, "stays")) == 1
        producer.produce("goes", b"2", partition=0)
        producer.flush()
        eventually(lambda: [row["offset"] for row in published(broker.data_directory, "goes")] == [1])


@pytest.mark.parametrize("killed", ["nothing", "publisher", "broker"])
def test_deleted_records_stay_beside_others_of_their_publication(tmp_path: Path, killed: str) -> None:
    """Whole publications go, over a kill right after the deletion, and `faircopy verify` takes what stays."""
    with BrokerProcess(tmp_path, "plain.interval.ms=50", "plain.grace.ms=1000") as broker:
        make_topics(broker.address, "t")
        publish_transactions(broker, "t", 3)
        delete_before(broker.address, "t", 6)  # the first of them, and a part of the second
        if killed == "broker":
            broker.restart()
        elif killed == "publisher" and (publisher := publisher_of(broker)) is not None:
            os.kill(publisher.pid, signal.SIGKILL)
        expected = [(0, offset) for offset in range(4, 12)]
        eventually(lambda: keys_of(published(broker.data_directory, "t")) == expected)
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce("t", b"more", partition=0)
        producer.flush()
        eventually(lambda: keys_of(published(broker.data_directory, "t")) == [*expected, (0, 12)])
        broker.stop()
        assert_sound(broker)


def publish_transactions(broker: BrokerProcess, topic: str, count: int) -> None:
    """Transactions of 4 messages to partition 0 of a new topic, each of which is published alone."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "t"})
    producer.init_transactions(60)
    for number in range(1, count + 1):
        producer.begin_transaction()
        for _ in range(4):
            producer.produce(topic, b"%d" % number, partition=0)
        producer.commit_transaction(60)
        eventually(lambda rows=4 * number: len(published(broker.data_directory, topic)) == rows)  # type: ignore[misc]


def delete_before(address: str, topic: str, offset: int) -> None:
    place = TopicPartition(topic, 0, offset)
    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_records([place])[place].result(60)


def test_what_is_deleted_before_it_is_published_is_never_published(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "plain.interval.ms=3600000") as broker:
        make_topics(broker.address, "t")
        publish_transactions(broker, "t", 1)
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(3):
            producer.produce("t", b"%d" % number, partition=0)
        producer.flush()
        delete_before(broker.address, "t", 6)
        broker.restart()  # a table is brought up to date when it is opened
        eventually(lambda: keys_of(published(broker.data_directory, "t")) == [(0, 6)])
        broker.stop()
        assert_sound(broker)


def keys_of(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


def assert_sound(broker: BrokerProcess) -> None:
    """`faircopy verify` finds nothing."""
    command = [sys.executable, "-m", "faircopy", "verify", str(broker.data_directory), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert json.loads(ran.stdout) == [], ran.stdout
