"""Records: what other clients build is read, what ours builds others read, and garbage is refused."""

from __future__ import annotations

import contextlib
import warnings
from itertools import islice
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import decode_varint_py
from hypothesis import given
from hypothesis import strategies as st

from faircopy.wire.batch import HEADER, HEADER_BYTES, check_produced, read_header, with_log_append_time
from faircopy.wire.compression import RecordsError
from faircopy.wire.records import (
    NewRecord,
    Record,
    build_batch,
    decode_records,
    varint,
    with_crc,
)

with warnings.catch_warnings():
    # kafka-python reads its schemas with importlib.resources.read_text, which Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
messages = st.builds(
    NewRecord,
    value=st.none() | st.binary(max_size=200),
    key=st.none() | st.binary(max_size=200),
    timestamp_ms=st.integers(0, 2**45),
    headers=headers.map(tuple),
)
batches = st.lists(messages, min_size=1, max_size=80)


def as_records(listed: list[NewRecord], base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + i, m.timestamp_ms, m.key, m.value, m.headers) for i, m in enumerate(listed)]


def built_by_aiokafka(listed: list[NewRecord], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for i, m in enumerate(listed):
        builder.append(i, m.timestamp_ms, m.key, m.value, list(m.headers))
    return bytes(builder.build())


@pytest.mark.parametrize("codec", CODECS)
@given(listed=batches)
def test_what_aiokafka_builds_is_read(codec: str, listed: list[NewRecord]) -> None:
    batch = built_by_aiokafka(listed, CODECS[codec])
    assert list(decode_records(batch)) == as_records(listed)


@given(listed=batches, base_offset=st.integers(0, 2**60))
def test_what_we_build_kafka_python_reads(listed: list[NewRecord], base_offset: int) -> None:
    batch = build_batch(listed, base_offset=base_offset)
    check_produced(memoryview(batch))
    theirs = KafkaPythonBatch(batch)
    assert theirs.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs]
    assert read == as_records(listed, base_offset) == list(decode_records(batch))


@given(listed=batches)
def test_log_append_time_holds_for_every_record(listed: list[NewRecord]) -> None:
    stamped = with_log_append_time(memoryview(build_batch(listed)), 77_000)
    assert {record.timestamp_ms for record in decode_records(stamped)} == {77_000}


def test_the_header_of_a_built_batch() -> None:
    listed = [
        NewRecord(b"a", timestamp_ms=5),
        NewRecord(b"b", timestamp_ms=9),
        NewRecord(b"c", timestamp_ms=7),
    ]
    batch = build_batch(
        listed,
        base_offset=40,
        leader_epoch=3,
        producer_id=8,
        producer_epoch=1,
        base_sequence=0,
        transactional=True,
    )
    header = check_produced(memoryview(batch))
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.records) == (40, 42, 3, 3)
    assert (header.base_timestamp_ms, header.max_timestamp_ms, header.is_transactional) == (5, 9, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 1, 0)


def test_header_keys_that_are_not_utf8_are_read_as_java_does() -> None:
    batch = build_batch([NewRecord(b"v", headers=(("kk", b"x"),))]).replace(b"kk", b"\xffk")
    assert [record.headers for record in decode_records(batch)] == [(("\ufffdk", b"x"),)]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_those_of_kafka(value: int) -> None:
    encoded = varint(value)
    assert decode_varint_py(bytearray(encoded)) == (value, len(encoded))


def with_records(section: bytes, records: int) -> bytes:
    """A batch whose header is good and whose records are `section`."""
    header = read_header(build_batch([NewRecord(b"")]))
    header = header._replace(
        length=HEADER_BYTES - 12 + len(section), records=records, last_offset_delta=records - 1
    )
    return with_crc(HEADER.pack(*header) + section)


def body(*parts: bytes) -> bytes:
    joined = b"".join(parts)
    return varint(len(joined)) + joined


NULL = varint(-1)
POISON = {
    "nothing there": b"",
    "zeros": bytes(100),
    "ones": b"\xff" * 100,
    "length beyond the end": varint(2**31) + b"\0\0\0" + NULL + NULL + b"\0",
    "negative length": varint(-7) + b"\0\0\0" + NULL + NULL + b"\0",
    "key beyond the end": body(b"\0\0\0", varint(2**31), NULL, b"\0"),
    "negative key length": body(b"\0\0\0", varint(-2), NULL, b"\0"),
    "value beyond the record": body(b"\0\0\0", NULL, varint(5), b"\0") * 2,
    "headers by the million": body(b"\0\0\0", NULL, NULL, varint(10**6)),
    "negative headers": body(b"\0\0\0", NULL, NULL, varint(-1)),
    "null header key": body(b"\0\0\0", NULL, NULL, varint(1), NULL, NULL),
    "wrong offset delta": body(b"\0\0", varint(1), NULL, NULL, b"\0"),
    "fields end before the record": body(b"\0\0\0", NULL, NULL, b"\0", b"rest"),
    "endless varint": b"\x80" * 11,
}


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("records", [1, 10, 2**31 - 1])
def test_poison_is_refused(name: str, records: int) -> None:
    with pytest.raises(RecordsError):
        list(decode_records(with_records(POISON[name], records)))


def test_bytes_after_the_last_record_are_refused() -> None:
    good = build_batch([NewRecord(b"v")])[HEADER_BYTES:]
    with pytest.raises(RecordsError, match="3 bytes follow"):
        list(decode_records(with_records(good + b"abc", 1)))


@given(section=st.binary(max_size=100), records=st.integers(-5, 20))
def test_garbage_never_raises_anything_else(section: bytes, records: int) -> None:
    any_of_them: list[Any] = []
    with contextlib.suppress(RecordsError):
        any_of_them.extend(islice(decode_records(with_records(section, records)), 100))
    assert len(any_of_them) <= max(records, 0)
