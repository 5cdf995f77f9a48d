"""The commands, with a real broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.client.connection import Connection
from faircopy.hosting.snapshots import DIRECTORY, LOCK
from faircopy.storage.system import mounted
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic, delete_topic


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
    assert producer.flush(20) == 0


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


def new_producer_id(broker: BrokerProcess) -> int:
    with Connection(broker.address) as connection:
        asked = {"transactional_id": None, "transaction_timeout_ms": 1_000}
        return int(connection.ask(INIT_PRODUCER_ID, 1, asked).producer_id)
