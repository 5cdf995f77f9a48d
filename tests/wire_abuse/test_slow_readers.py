"""Clients that ask for much and read slowly, or not at all, cost the broker no memory and others no time."""

from __future__ import annotations

import fcntl
import os
import socket
import termios
from array import array
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.wire.messages import decode_response, encode_request
from tests.broker_process import BrokerProcess, eventually
from tests.wire_abuse.memory import memory_bytes

MIB = 1 << 20
TOPIC = "large"
VALUE_BYTES = 100_000
SMALL_BYTES = 50_000
MESSAGES = 400
READERS = 30
VERSION = 11
RECEIVED_BYTES = 64 << 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """With one partition of 40 MB, of which the first batch is small."""
    with BrokerProcess(tmp_path_factory.mktemp("broker"), "durability=os") as broker:
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce(TOPIC, bytes(4 + SMALL_BYTES), partition=0)
        assert producer.flush(60) == 0
        for number in range(1, MESSAGES):
            producer.produce(TOPIC, number.to_bytes(4, "big") + os.urandom(VALUE_BYTES), partition=0)
        assert producer.flush(60) == 0
        # The ack is for the journal; what a reader gets is in the log.
        assert read_all(broker) == list(range(MESSAGES))
        yield broker


def fetch(offset: int, max_bytes: int, correlation_id: int = 1) -> bytes:
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": offset, "log_start_offset": -1}
    body = {
        "replica_id": -1,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "isolation_level": 1,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [partition | {"partition_max_bytes": max_bytes}]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return encode_request(FETCH, VERSION, correlation_id, "slow", body)


def connect(broker: BrokerProcess) -> socket.socket:
    host, port = broker.address.split(":")
    connection = socket.socket()
    # Little is to fit into a connection that is not read.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
    connection.settimeout(60)
    connection.connect((host, int(port)))
    return connection


def receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(min(size - len(found), MIB))
        assert piece
        found += piece
    return bytes(found)


def records_of(connection: socket.socket, correlation_id: int = 1) -> bytes:
    """Receive one response, which must be the one to this request."""
    frame = receive(connection, int.from_bytes(receive(connection, 4), "big"))
    assert int.from_bytes(frame[:4], "big") == correlation_id
    partition = decode_response(FETCH, VERSION, memoryview(frame))[1].responses[0].partitions[0]
    assert partition.error_code == 0
    return bytes(partition.records)


def log_of(broker: BrokerProcess) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(broker.data_directory.rglob(f"{TOPIC}*/**/*.log")))


def descriptors(broker: BrokerProcess) -> int:
    found: int = psutil.Process(broker.pid).num_fds()
    return found


def read_all(broker: BrokerProcess) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[int] = []
    while len(found) < MESSAGES:
        message = consumer.poll(60)
        assert message is not None
        value = message.value()
        assert value is not None
        found.append(int.from_bytes(value[:4], "big"))
    consumer.close()
    return found


def test_readers_that_do_not_read_take_no_memory(broker: BrokerProcess) -> None:
    before = memory_bytes(broker)
    readers = [connect(broker) for _ in range(READERS)]
    for reader in readers:
        reader.sendall(fetch(0, 50 * MIB))
    assert read_all(broker) == list(range(MESSAGES))
    assert memory_bytes(broker) < before + 40 * MIB, "each of the thirty asked for 40 MB"
    expected = log_of(broker)
    assert records_of(readers[0]) == expected
    assert records_of(readers[1]) == expected
    for reader in readers:
        reader.close()


def test_what_a_reader_left_behind_is_let_go(broker: BrokerProcess) -> None:
    before = descriptors(broker)
    for is_polite in (True, False):
        readers = [connect(broker) for _ in range(60)]
        for reader in readers:
            reader.sendall(fetch(0, 50 * MIB))
            receive(reader, 100_000)
            if not is_polite:
                # With a linger of nothing, close() resets the connection.
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            reader.close()
    eventually(lambda: descriptors(broker) <= before)
    assert read_all(broker) == list(range(MESSAGES))


def has_much_to_read(connection: socket.socket) -> bool:
    """Whether answers have come that nobody has read yet, nearly as many as fit in."""
    waiting = array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, waiting)
    return waiting[0] >= RECEIVED_BYTES // 2


def test_answers_of_a_pipeline_keep_their_order_and_their_bytes(broker: BrokerProcess) -> None:
    """Small answers fill the connection; a large one is not sent past those that wait in the broker.

    Nobody knows how much an unread connection holds, so many sizes are tried: with some, a few bytes wait.
    """
    expected = log_of(broker)
    pipelines = [[SMALL_BYTES] * count + [MIB, SMALL_BYTES, MIB] for count in range(10, 110)]
    connections = [connect(broker) for _ in pipelines]
    for connection, sizes in zip(connections, pipelines, strict=True):
        connection.sendall(b"".join(fetch(0, size, number) for number, size in enumerate(sizes)))
    for connection in connections:
        eventually(partial(has_much_to_read, connection))
    for connection, sizes in zip(connections, pipelines, strict=True):
        for number, size in enumerate(sizes):
            records = records_of(connection, number)
            assert records == expected[: len(records)]
            assert size <= len(records) <= size + 1000
        connection.close()


def test_a_broker_stops_while_a_reader_does_not_read(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "durability=os") as broker:
        producer = Producer({"bootstrap.servers": broker.address})
        for _ in range(100):
            producer.produce(TOPIC, os.urandom(VALUE_BYTES), partition=0)
        assert producer.flush(60) == 0
        with connect(broker) as connection:
            connection.sendall(fetch(0, 50 * MIB))
            receive(connection, 1000)
            assert broker.stop() == 0
        broker.ensure_no_traceback()
