"""Bad input on the wire: each gets its error or a closed connection, and nobody else notices."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cramjam
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.api.routes import advertised
from faircopy.client.connection import BrokerConnection
from faircopy.wire.batch import HEADER_BYTES
from faircopy.wire.codec import Message as WireMessage
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_request
from faircopy.wire.records import NewRecord, build_batch, varint, with_crc
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.wire_abuse.memory import memory_bytes, memory_peak_bytes

MEMORY_BYTES_MAX = 512 << 20  # three times what the bombs take; one that is inflated takes 1 GiB or more
TOPIC = "abused"


@pytest.fixture(scope="module", autouse=True)
def undisturbed(broker: BrokerProcess) -> Iterator[None]:
    """A client that must notice none of these tests: it produces before them, and reads all after them."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic("bystander", 1), NewTopic(TOPIC, 1)]).values():
        made.result(60)
    producer = Producer({"bootstrap.servers": broker.address})
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "bystander", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("bystander", 0, 0)])
    producer.produce("bystander", b"before", partition=0)
    assert producer.flush(60) == 0
    yield
    producer.produce("bystander", b"after", partition=0)
    assert producer.flush(60) == 0
    assert [message.value() for message in consumer.consume(2, 60)] == [b"before", b"after"]
    consumer.close()
    assert memory_bytes(broker) < MEMORY_BYTES_MAX


def connect(broker: BrokerProcess) -> socket.socket:
    host, port = broker.address.split(":")
    return socket.create_connection((host, int(port)), 60)


def is_closed(connection: socket.socket) -> bool:
    """Whether the broker closed the connection without an answer."""
    connection.settimeout(60)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


# -- frames --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", (100 << 20) + 1),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        framed(b""),
        framed(b"\0"),
        framed(struct.pack(">hhih", 3, 1, 1, 32767)),
        framed(struct.pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe" + struct.pack(">i", 0)),
        framed(struct.pack(">hhih", 999, 0, 1, -1)),
        framed(struct.pack(">hhih", -1, -1, -1, -1)),
        framed(struct.pack(">hhih", 3, 99, 1, -1)),
        framed(struct.pack(">hhih", 1, 3, 1, -1)),
        framed(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
        framed(struct.pack(">hhihi", 3, 1, 1, -1, -2)),
    ],
    ids=lambda data: data[:14].hex(),
)
def test_what_is_no_request_closes_the_connection(broker: BrokerProcess, data: bytes) -> None:
    with connect(broker) as connection:
        connection.sendall(data)
        assert is_closed(connection)


def test_an_api_versions_request_of_the_future_gets_error_35_in_version_0(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(framed(struct.pack(">hhih", 18, 99, 7, -1) + b"\xff" * 20))
        answer = connection.recv(1000)
    _, correlation_id, error, count = struct.unpack_from(">iihi", answer)
    assert (correlation_id, error, count) == (7, ErrorCode.UNSUPPORTED_VERSION, 1)


def test_half_frames_hold_nothing(broker: BrokerProcess) -> None:
    """A hundred clients announce 100 MiB each, and send a little: memory follows what came."""
    before = memory_bytes(broker)
    connections = [connect(broker) for _ in range(100)]
    for connection in connections:
        connection.sendall(struct.pack(">i", 100 << 20) + b"\0\0" * 1000)
    with BrokerConnection(broker.address) as client:
        assert client.ask(METADATA, 9, {"topics": []}).topics == []
    assert memory_bytes(broker) - before < 64 << 20
    for connection in connections:
        connection.close()


def test_a_frame_may_come_byte_by_byte(broker: BrokerProcess) -> None:
    request = encode_request(METADATA, 1, 5, "slow", {"topics": []})
    with connect(broker) as connection:
        for byte in request:
            connection.sendall(bytes([byte]))
        assert struct.unpack_from(">ii", connection.recv(1000))[1] == 5


def test_requests_in_one_piece_are_answered_in_order(broker: BrokerProcess) -> None:
    requests = [encode_request(METADATA, 1, number, "x", {"topics": []}) for number in range(300)]
    with connect(broker) as connection:
        connection.sendall(b"".join(requests))
        received = b""
        seen: list[int] = []
        while len(seen) < 300:
            received += connection.recv(65536)
            while len(received) >= 4 and len(received) >= 4 + (size := int.from_bytes(received[:4], "big")):
                seen.append(int.from_bytes(received[4:8], "big"))
                received = received[4 + size :]
    assert seen == list(range(300))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_api_with_any_body(broker: BrokerProcess, data: st.DataObject) -> None:
    """Random bodies: an answer or a closed connection, and the next connection is served."""
    api_key, versions = data.draw(st.sampled_from(list(advertised().items())))
    version = data.draw(st.sampled_from(versions))
    body = data.draw(st.binary(max_size=200))
    with connect(broker) as connection:
        connection.sendall(framed(struct.pack(">hhih", api_key, version, 1, -1) + body))
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)
        while connection.recv(65536):
            pass
    with BrokerConnection(broker.address) as client:
        assert client.ask(METADATA, 9, {"topics": []}).topics == []


# -- batches -------------------------------------------------------------------------------------------------


def produce(
    broker: BrokerProcess, records: bytes | None, topic: str = TOPIC, partition: int = 0, **fields: Any
) -> WireMessage:
    """Produce raw bytes; the answer for the partition."""
    partitions = [{"index": partition, "records": records}]
    body = {
        "acks": -1,
        "timeout_ms": 5_000,
        "topic_data": [{"name": topic, "partition_data": partitions}],
    } | fields
    with BrokerConnection(broker.address) as connection:
        answer: WireMessage = connection.ask(PRODUCE, 9, body).responses[0].partition_responses[0]
        return answer


def changed(batch: bytes, at: int, data: bytes) -> bytes:
    return batch[:at] + data + batch[at + len(data) :]


GOOD = build_batch([NewRecord(b"one"), NewRecord(b"two")])
OF_NOBODY = build_batch([NewRecord(b"x")], producer_id=2**40, producer_epoch=0, base_sequence=0)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.CORRUPT_MESSAGE),
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:30], ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:-1], ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, len(GOOD) - 1, b"\x7f"), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, 17, b"\0\0\0\0"), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, 8, b"\xff\xff\xff\xff"), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, 16, b"\0"), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (changed(GOOD, 16, b"\1"), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (with_crc(changed(GOOD, 57, b"\xff\xff\xff\xff")), ErrorCode.INVALID_RECORD),
        (with_crc(changed(GOOD, 57, b"\0\0\0\0")), ErrorCode.INVALID_RECORD),
        (with_crc(changed(GOOD, 57, b"\x7f\xff\xff\xff")), ErrorCode.INVALID_RECORD),
        (with_crc(changed(GOOD, 21, b"\0\x20")), ErrorCode.INVALID_RECORD),
        (with_crc(changed(GOOD, 21, b"\0\x07")), ErrorCode.INVALID_RECORD),
        (OF_NOBODY, ErrorCode.UNKNOWN_PRODUCER_ID),
        (
            build_batch([NewRecord(b"x")], producer_id=1, producer_epoch=-1, base_sequence=0),
            ErrorCode.INVALID_RECORD,
        ),
        (build_batch([NewRecord(b"x" * 2_000_000)]), ErrorCode.MESSAGE_TOO_LARGE),
        (os.urandom(500), ErrorCode.CORRUPT_MESSAGE),
    ],
)  # fmt: skip
def test_bad_batches_get_their_codes(broker: BrokerProcess, records: bytes | None, code: ErrorCode) -> None:
    if records is not None and len(records) == 500 and records[16] == 2:
        records = changed(records, 16, b"\xff")
    expected = {code}
    if records is not None and len(records) == 500:
        expected.add(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    assert produce(broker, records).error_code in expected


def test_a_transactional_batch_without_a_transaction_is_refused(broker: BrokerProcess) -> None:
    with BrokerConnection(broker.address) as connection:
        given_id = connection.ask(
            INIT_PRODUCER_ID, 2, {"transactional_id": "abuse", "transaction_timeout_ms": 60_000}
        )
    batch = build_batch(
        [NewRecord(b"x")],
        producer_id=given_id.producer_id,
        producer_epoch=given_id.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    answer = produce(broker, batch, transactional_id="abuse")
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE


def test_places_that_there_are_not(broker: BrokerProcess) -> None:
    for topic, partition in (
        ("no-such-topic", 0),
        (TOPIC, 1),
        (TOPIC, -1),
        (TOPIC, 2**31 - 1),
        ("../../etc/passwd", 0),
    ):
        answer = produce(broker, GOOD, topic, partition)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.base_offset == -1


def test_acks_that_there_are_not(broker: BrokerProcess) -> None:
    assert produce(broker, GOOD, acks=5).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_names_that_no_topic_can_have(broker: BrokerProcess) -> None:
    names = ["", ".", "..", "a/b", "x" * 250, "ä", "a b", "\0"]
    body = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True}
    with BrokerConnection(broker.address) as connection:
        answer = connection.ask(METADATA, 9, body)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_TOPIC_EXCEPTION}


def recompressed(batch: bytes, section: bytes, codec: int = 4, records: int | None = None) -> bytes:
    """The batch with another section, which is compressed already, and another number of records."""
    made = bytearray(batch[:HEADER_BYTES] + section)
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">h", made, 21, struct.unpack_from(">h", made, 21)[0] | codec)
    if records is not None:
        struct.pack_into(">i", made, 23, records - 1)
        struct.pack_into(">i", made, 57, records)
    return with_crc(made)


def test_a_bomb_is_not_inflated(broker: BrokerProcess) -> None:
    """Batches of 4 GiB in some KiB, from several clients at once."""
    piece = bytes(cramjam.zstd.compress(bytes(1 << 30)))
    one_record = bytes(cramjam.zstd.compress(varint(4 << 30)))
    for first, code in ((b"", ErrorCode.INVALID_RECORD), (one_record, ErrorCode.MESSAGE_TOO_LARGE)):
        bomb = recompressed(build_batch([NewRecord(b"x")]), first + piece * 4)
        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(produce, [broker] * 8, [bomb] * 8))
        assert {answer.error_code for answer in answers} == {code}
    assert memory_bytes(broker) < MEMORY_BYTES_MAX


def test_a_search_by_time_does_not_inflate_what_is_large(fresh_broker: BrokerProcess) -> None:
    """A fresh broker, since what others had inflated would hide it."""
    create_topic(fresh_broker.address, TOPIC)
    plain = build_batch([NewRecord(bytes(60 << 20))])
    batch = recompressed(plain, bytes(cramjam.zstd.compress(plain[HEADER_BYTES:])))
    assert produce(fresh_broker, batch).error_code == ErrorCode.NONE
    before = memory_peak_bytes(fresh_broker)
    partition = {"partition_index": 0, "timestamp": 0}
    with BrokerConnection(fresh_broker.address) as connection:
        found = connection.ask(LIST_OFFSETS, 5, {"topics": [{"name": TOPIC, "partitions": [partition]}]})
    assert found.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert memory_peak_bytes(fresh_broker) - before < 20 << 20


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize(
    ("held", "said"), [(1, 1_000), (1_000, 1), (1, 2**31 - 1), (20_000, 19_999), (20_000, 20_001)]
)
def test_a_batch_that_lies_about_its_records_is_refused(
    broker: BrokerProcess, codec: int, held: int, said: int
) -> None:
    """Else the offsets of consumers would have a hole, or two messages one offset."""
    plain = build_batch([NewRecord(b"32 KB" * 8 if held == 1 else b"")] * held)
    section = plain[HEADER_BYTES:]
    lie = recompressed(plain, bytes(cramjam.zstd.compress(section)) if codec else section, codec, said)
    answer = produce(broker, lie)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    true = recompressed(plain, bytes(cramjam.zstd.compress(section)) if codec else section, codec, held)
    assert produce(broker, true).error_code == ErrorCode.NONE


def test_batches_that_take_long_to_check_keep_their_order(broker: BrokerProcess) -> None:
    """All in flight at once: small ones, and ones that are counted on another thread."""
    with BrokerConnection(broker.address) as connection:
        asked = {
            "transactional_id": None,
            "transaction_timeout_ms": 1_000,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        given = connection.ask(INIT_PRODUCER_ID, 4, asked)
    frames, sequence = [], 0
    for number in range(30):
        records = 30_000 if number % 3 else 2
        plain = build_batch(
            [NewRecord(b"")] * records,
            producer_id=given.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        batch = recompressed(plain, bytes(cramjam.zstd.compress(plain[HEADER_BYTES:])))
        partitions = [{"index": 0, "records": batch}]
        body = {
            "acks": -1,
            "timeout_ms": 5_000,
            "topic_data": [{"name": TOPIC, "partition_data": partitions}],
        }
        frames.append(encode_request(PRODUCE, 9, number, "test", body))
        sequence += records
    client = connect(broker)
    client.sendall(b"".join(frames))
    with client, client.makefile("rb") as answers:
        for number in range(30):
            frame = answers.read(struct.unpack(">i", answers.read(4))[0])
            header, answer = decode_response(PRODUCE, 9, memoryview(frame))
            assert header == number
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_fetches_out_of_bounds(broker: BrokerProcess) -> None:
    def fetch(offset: int, partition: int = 0, session_id: int = 0, **fields: Any) -> WireMessage:
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        body = {
            "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_id": session_id,
            "topics": [{"topic": TOPIC, "partitions": [asked]}],
        }  # fmt: skip
        with BrokerConnection(broker.address) as connection:
            return connection.ask(FETCH, 11, body | fields)

    for offset in (-1, 10**9, -(2**63), 2**63 - 1):
        assert fetch(offset).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(0, partition=7).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(0, session_id=9, session_epoch=1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(0, session_id=9).error_code == ErrorCode.NONE, "a full Fetch ends its session (KIP-227)"
    assert fetch(0, max_bytes=-5, min_bytes=-5, max_wait_ms=-5).error_code == ErrorCode.NONE
