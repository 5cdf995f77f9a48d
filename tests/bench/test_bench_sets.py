"""Replica sets as systems under test: three processes each, which all have what a client has written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from bench.load.clients import make_topic, throughput_producer
from bench.systems.faircopy_set import FaircopySet
from bench.systems.kafka import find_kafka
from bench.systems.kafka_set import KafkaSet
from bench.systems.system import Served
from tests.broker_process import eventually
from tests.fetch.needed import needed

MESSAGE = b"held by all three"


def started(system: Served) -> Iterator[Served]:
    try:
        system.start()
        yield system
    finally:
        system.kill()


@pytest.fixture
def faircopy_set(tmp_path: Path) -> Iterator[Served]:
    yield from started(FaircopySet(tmp_path))


@pytest.fixture
def kafka_set(tmp_path: Path) -> Iterator[Served]:
    needed(find_kafka)
    yield from started(KafkaSet(tmp_path))


def write(system: Served) -> None:
    """One message into a new topic, acked."""
    make_topic(system.address, "orders", 1)
    producer = throughput_producer(system.address)
    producer.produce("orders", MESSAGE)
    assert producer.flush(60) == 0


def holders(directory: Path) -> list[Path]:
    """The files that have the message."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return sorted(path for path in files if MESSAGE in path.read_bytes())


def test_a_leader_and_two_followers_have_a_message(faircopy_set: Served, tmp_path: Path) -> None:
    assert list(faircopy_set.processes) == ["leader", "follower 2", "follower 3"]
    assert len(set(faircopy_set.processes.values())) == 3
    write(faircopy_set)
    journals = [path for path in holders(tmp_path) if "journal" in path.parts]
    assert [path.relative_to(tmp_path).parts[0] for path in journals] == ["1", "2", "3"]

    address = faircopy_set.address
    faircopy_set.stop()
    faircopy_set.start()
    assert faircopy_set.address == address
    assert "orders" in AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics


def test_three_brokers_of_kafka_have_a_message(kafka_set: Served, tmp_path: Path) -> None:
    assert list(kafka_set.processes) == ["broker 1", "broker 2", "broker 3"]
    assert len(kafka_set.address.split(",")) == 3
    write(kafka_set)
    nodes = ["node-1", "node-2", "node-3"]
    eventually(lambda: [path.relative_to(tmp_path).parts[0] for path in holders(tmp_path)] == nodes)
    topic = AdminClient({"bootstrap.servers": kafka_set.address}).list_topics("orders", timeout=60)
    assert sorted(topic.topics["orders"].partitions[0].replicas) == [1, 2, 3]
