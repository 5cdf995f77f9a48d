"""The commands, with a real broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.client.connection import BrokerConnection
from faircopy.hosting.snapshots import DIRECTORY, LOCK
from faircopy.storage.system import mounted
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic, delete_topic

CONSUME_SECONDS = 60.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, "plain.enabled=false", "checkpoint.interval.ms=100") as made:
        create_topic(made.address, "t", 2)
        produce(made, "t", 100)
        yield made


def produce(broker: BrokerProcess, topic: str, messages: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(messages):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(60) == 0


def run(*words: str | Path, fails: bool = False) -> str:
    command = [sys.executable, "-m", "faircopy", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == int(fails), done.stdout + done.stderr
    return done.stdout + done.stderr


def messages_in(broker: BrokerProcess, topic: str) -> int:
    return len(run("consume", topic, "--from-beginning", "--exit", "--broker", broker.address).splitlines())


def test_back_up_and_restore(broker: BrokerProcess, tmp_path: Path) -> None:
    said = run("backup", tmp_path / "b", "--broker", broker.address)
    assert "copied" in said
    produce(broker, "t", 50)
    assert "restored" in run("restore", tmp_path / "b", tmp_path / "new")
    assert "all as it should be" in run("verify", tmp_path / "new")
    restored = BrokerProcess(tmp_path / "b")
    restored.data_directory = tmp_path / "new"
    with restored:
        assert messages_in(restored, "t") == 100
        produce(restored, "t", 10)
        assert messages_in(restored, "t") == 110
    assert messages_in(broker, "t") == 150
    assert "not empty" in run("restore", tmp_path / "b", tmp_path / "new", fails=True)


def test_a_damaged_backup_is_not_restored(broker: BrokerProcess, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--broker", broker.address)
    damaged = next((tmp_path / "b").rglob("data.mdb"))
    content = bytearray(damaged.read_bytes())
    content[5_000] ^= 1
    damaged.write_bytes(content)
    assert "data.mdb" in run("restore", tmp_path / "b", tmp_path / "new", fails=True)
    assert not (tmp_path / "new").exists()


def test_one_backup_at_a_time(broker: BrokerProcess, tmp_path: Path) -> None:
    snapshot = broker.data_directory / DIRECTORY
    snapshot.mkdir()
    lock = mounted().lock(snapshot / LOCK)
    try:
        assert "another backup" in run("backup", tmp_path / "b", "--broker", broker.address, fails=True)
    finally:
        mounted().close(lock)
    run("backup", tmp_path / "b", "--broker", broker.address)
    assert not snapshot.exists()


def test_topics_come_and_go_around_backups(broker: BrokerProcess, tmp_path: Path) -> None:
    create_topic(broker.address, "u", 2)
    produce(broker, "u", 20)
    run("backup", tmp_path / "b", "--broker", broker.address)
    delete_topic(broker.address, "u")
    run("restore", tmp_path / "b", tmp_path / "new")
    run("backup", tmp_path / "b", "--broker", broker.address)
    run("restore", tmp_path / "b", tmp_path / "newer")
    for name, expected in (("new", 20), ("newer", 0)):
        restored = BrokerProcess(tmp_path / name, "auto.create.topics=false")
        restored.data_directory = tmp_path / name
        with restored:
            topics = run("topics", "list", "--broker", restored.address)
            assert ("u" in topics) == bool(expected)
            if expected:
                assert messages_in(restored, "u") == expected


def test_producers_of_the_other_broker_are_strangers(broker: BrokerProcess, tmp_path: Path) -> None:
    """Ids that were given out after the backup are never given out by the restored broker."""
    run("backup", tmp_path / "b", "--broker", broker.address)
    run("restore", tmp_path / "b", tmp_path / "new")
    given_out = [new_producer_id(broker) for _ in range(3)]
    restored = BrokerProcess(tmp_path / "b")
    restored.data_directory = tmp_path / "new"
    with restored:
        assert new_producer_id(restored) > max(given_out) + 1_000_000


def test_consumers_go_on_with_the_restored_broker(broker: BrokerProcess, tmp_path: Path) -> None:
    """It leads under epochs that the other one never reached: a client takes no lower one for the newest."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(2)])
    try:
        assert len(consume(consumer, 100)) == 100
        run("backup", tmp_path / "b", "--broker", broker.address)
        for number in range(3):
            broker.restart(kill=number % 2 == 0)
            assert consumer.list_topics(timeout=120).topics
        reached = leader_epochs(broker)
        broker.stop()
        run("restore", tmp_path / "b", tmp_path / "new")
        broker.data_directory = tmp_path / "new"
        broker.start()
        assert min(leader_epochs(broker)) > max(reached)
        produce(broker, "t", 10)
        assert len(consume(consumer, 10)) == 10
    finally:
        consumer.close()


def test_what_was_open_is_aborted(broker: BrokerProcess, tmp_path: Path) -> None:
    """Also on the same boot: what the original acknowledged after the backup is not there (P9)."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "a", "linger.ms": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"before", partition=0)
    assert producer.flush(60) == 0
    run("backup", tmp_path / "b", "--broker", broker.address)
    producer.produce("t", b"after", partition=0)
    assert producer.flush(60) == 0
    broker.kill()
    run("restore", tmp_path / "b", tmp_path / "new")
    broker.data_directory = tmp_path / "new"
    broker.start()
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(60)
    assert raised.value.args[0].txn_requires_abort()
    producer.abort_transaction(60)
    assert messages_in(broker, "t") == 100


def consume(consumer: Consumer, messages: int) -> list[bytes]:
    """The next messages; fewer if they don't come for long."""
    found: list[bytes] = []
    deadline = time.monotonic() + CONSUME_SECONDS
    while len(found) < messages and time.monotonic() < deadline:
        got = consumer.consume(messages - len(found), 0.1)
        found += [each.value() or b"" for each in got if each.error() is None]
    return found


def leader_epochs(broker: BrokerProcess) -> list[int]:
    """What Metadata tells of each partition of the topic."""
    with BrokerConnection(broker.address) as connection:
        (topic,) = connection.ask(METADATA, 9, {"topics": [{"name": "t"}]}).topics
        return [partition.leader_epoch for partition in topic.partitions]


def new_producer_id(broker: BrokerProcess) -> int:
    with BrokerConnection(broker.address) as connection:
        asked = {"transactional_id": None, "transaction_timeout_ms": 1_000}
        return int(connection.ask(INIT_PRODUCER_ID, 1, asked).producer_id)
