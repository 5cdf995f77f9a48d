"""A broker with more files than descriptors: it closes some, and takes nothing for a failed disk."""

from __future__ import annotations

import resource
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.client.connection import BrokerConnection
from faircopy.storage.descriptors import share_out
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, eventually

LIMIT = 256
PARTITIONS = 600
WAIT_SECONDS = 120.0


@pytest.fixture(params=["os", "fsync"])
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    made = BrokerProcess(tmp_path, "plain.enabled=false", f"durability={request.param}")
    made.within = ("prlimit", f"--nofile={LIMIT}:{LIMIT}")
    with made:
        yield made


def make_topic(broker: BrokerProcess, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, partitions)])[name].result(WAIT_SECONDS)


def produce_to_all(broker: BrokerProcess, value: bytes) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": broker.address})
    for partition in range(PARTITIONS):
        producer.produce(
            "t", value, partition=partition, on_delivery=lambda error, _: failed.append(error is not None)
        )
    assert producer.flush(WAIT_SECONDS) == 0
    assert len(failed) == PARTITIONS
    assert not any(failed)


def read_all(broker: BrokerProcess, messages: int) -> Counter[tuple[int, bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
    found: Counter[tuple[int, bytes]] = Counter()
    while found.total() < messages:
        message = consumer.poll(WAIT_SECONDS)
        assert message is not None
        assert not message.error()
        partition, value = message.partition(), message.value()
        assert partition is not None and value is not None
        found[partition, value] += 1
    consumer.close()
    return found


def open_files(broker: BrokerProcess) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


def is_open(connection: socket.socket) -> bool:
    """Whether the broker has not closed its side."""
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def limit_files(broker: BrokerProcess, limit: int) -> None:
    """Change the limit of a broker that runs."""
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (limit, LIMIT))


def test_more_partitions_than_descriptors(broker: BrokerProcess) -> None:
    make_topic(broker, "t", PARTITIONS)
    values = [b"first", b"second", b"third"]
    for value in values:
        produce_to_all(broker, value)
        assert open_files(broker) < LIMIT
    expected = Counter({(partition, value): 1 for partition in range(PARTITIONS) for value in values})
    assert read_all(broker, len(expected)) == expected
    broker.restart()
    assert read_all(broker, len(expected)) == expected
    produce_to_all(broker, b"fourth")
    broker.restart(kill=False)
    assert read_all(broker, len(expected) + PARTITIONS) == expected + Counter(
        {(partition, b"fourth"): 1 for partition in range(PARTITIONS)}
    )
    assert "CRITICAL" not in broker.log
    assert "is enough for" in broker.log


def test_connections_leave_descriptors_to_files(broker: BrokerProcess) -> None:
    host, port = broker.address.split(":")
    opened = [socket.create_connection((host, int(port))) for _ in range(2 * LIMIT)]
    served = share_out(LIMIT, LIMIT).connections
    try:
        eventually(lambda: 0 < sum(map(is_open, opened)) <= served)
        assert open_files(broker) < LIMIT - 32
    finally:
        for each in opened:
            each.close()
    eventually(lambda: open_files(broker) < LIMIT // 2)
    make_topic(broker, "u", 3)
    assert "CRITICAL" not in broker.log


def error_of_making(name: str, connection: BrokerConnection) -> ErrorCode:
    topic = {"name": name, "num_partitions": 2, "replication_factor": -1, "assignments": [], "configs": []}
    answer = connection.ask(
        CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 10_000, "validate_only": False}
    )
    return ErrorCode(answer.topics[0].error_code)


def test_no_descriptors_at_all_is_a_passing_refusal(broker: BrokerProcess) -> None:
    """The limit falls below what is open: nothing more opens, and the broker does not blame its disk."""
    with BrokerConnection(broker.address) as connection:  # from before, for a new one would not be accepted
        assert error_of_making("t", connection) is ErrorCode.NONE
        limit_files(broker, 20)
        errors = [error_of_making(f"other{number}", connection) for number in range(20)]
        assert {*errors} - {ErrorCode.NONE}  # the spare ones are used up
        limit_files(broker, LIMIT)
        assert error_of_making("again", connection) is ErrorCode.NONE
    assert "CRITICAL" not in broker.log
