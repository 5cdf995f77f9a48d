"""What the tests of plain tables share: batches good and bad, and a dumb second way to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import cramjam
from hypothesis import strategies as st

from faircopy.publish.headers import HEADERS_AT_MOST
from faircopy.publish.record_run import LoggedBatch, Source
from faircopy.wire.batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LOG_APPEND_TIME,
    read_header,
)
from faircopy.wire.compression import RecordsError, decompress
from faircopy.wire.records import NewRecord, varint, with_crc

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]

headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
messages = st.builds(
    NewRecord,
    value=st.none() | st.binary(max_size=200),
    key=st.none() | st.binary(max_size=20),
    timestamp_ms=st.integers(0, 2**45),
    headers=st.just(()) | headers.map(tuple),
)
message_lists = st.lists(messages, min_size=1, max_size=70)

_ENCODERS: dict[int, Callable[[bytes], ReadableBuffer]] = {
    0: bytes,
    1: cramjam.gzip.compress,
    2: cramjam.snappy.compress_raw,
    3: cramjam.lz4.compress,
    4: cramjam.zstd.compress,
}


def recompressed(batch: bytes, codec: int) -> bytes:
    """An uncompressed batch, compressed."""
    return with_section(batch, bytes(_ENCODERS[codec](batch[HEADER_BYTES:])), attributes=codec)


def with_section(batch: bytes, section: bytes, attributes: int = 0, records: int | None = None) -> bytes:
    """`batch` with other bytes for its records, and if given, another count of them."""
    header = read_header(batch)
    count = header.records if records is None else records
    header = header._replace(
        length=HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(section),
        attributes=header.attributes | attributes,
        records=count,
        last_offset_delta=count - 1,
    )
    return with_crc(HEADER.pack(*header) + section)


def logged(log: bytes, txids: Sequence[str | None] = (), first_offset: int = 0) -> Iterator[LoggedBatch]:
    """The batches of a log, the i-th of transaction `txids[i]`, as of partition 3 of orders."""
    at, number = 0, 0
    source = Source("orders", 3, first_offset)
    while at < len(log):
        header = read_header(log, at)
        yield LoggedBatch(source, header, log, at, txids[number] if txids else None)
        at, number = at + header.size_bytes, number + 1


def body(*parts: bytes) -> bytes:
    """A record with these fields."""
    joined = b"".join(parts)
    return varint(len(joined)) + joined


NULL = varint(-1)
POISON = {
    "nothing": b"",
    "zeros": bytes(100),
    "ones": b"\xff" * 100,
    "length beyond the end": varint(2**31) + b"\0\0\0" + NULL + NULL + b"\0",
    "negative length": varint(-7) + b"\0\0\0" + NULL + NULL + b"\0",
    "key beyond the end": body(b"\0\0\0", varint(2**31), NULL, b"\0"),
    "negative key length": body(b"\0\0\0", varint(-2), NULL, b"\0"),
    "value beyond the record": body(b"\0\0\0", NULL, varint(5), b"\0"),
    "headers by the million": body(b"\0\0\0", NULL, NULL, varint(10**6)),
    "headers by the million, and bytes": body(b"\0\0\0", NULL, NULL, varint(10**6), bytes(5000)),
    "negative headers": body(b"\0\0\0", NULL, NULL, varint(-1)),
    "null header key": body(b"\0\0\0", NULL, NULL, varint(1), NULL, NULL),
    "header value beyond the record": body(b"\0\0\0", NULL, NULL, varint(2), b"\2k\2v\2k\4v"),
    "wrong offset delta": body(b"\0\0", varint(1000), NULL, NULL, b"\0"),
    "fields end before the record": body(b"\0\0\0", NULL, NULL, b"\0", b"rest"),
    "endless varint": b"\x80" * 11,
    "timestamp without end": body(b"\0", b"\xff" * 10, b"\0", NULL, NULL, b"\0"),
}


def loop_over(batch: LoggedBatch, first_offset: int, limit_bytes: int = 1 << 27) -> Iterator[Row]:
    """The rows of one batch, decoded record by record; what can't be decoded is left out."""
    section = batch.data[batch.at + HEADER_BYTES : batch.at + batch.header.size_bytes]
    try:
        data = bytes(decompress(batch.header.attributes & COMPRESSION_MASK, section, limit_bytes))
    except RecordsError:
        return
    at = 0
    for index in range(batch.header.records):
        try:
            size, begin = _varint(data, at, 5)
        except (IndexError, ValueError):
            return
        at = begin + size
        if size < 6 or at > len(data):
            return
        row = _row(batch, data[begin:at], index)
        if row is not None and row["offset"] >= first_offset:
            yield row


def _row(batch: LoggedBatch, data: bytes, index: int) -> Row | None:
    try:
        delta_ms, at = _varint(data, 1, 10)
        offset_delta, at = _varint(data, at, 5)
        key, at = _nullable(data, at)
        value, at = _nullable(data, at)
        count, at = _varint(data, at, 5)
        listed: list[Row] = []
        if not 0 <= count <= HEADERS_AT_MOST:
            return None
        for _ in range(count):
            name, at = _nullable(data, at)
            content, at = _nullable(data, at)
            if name is None:
                return None
            listed.append({"key": name.decode("utf-8", "replace"), "value": content})
    except (IndexError, ValueError):
        return None
    if at != len(data) or offset_delta != index:
        return None
    stamped = bool(batch.header.attributes & LOG_APPEND_TIME)
    exact = batch.header.max_timestamp_ms if stamped else batch.header.base_timestamp_ms + delta_ms
    wrapped = (exact + 2**63) % 2**64 - 2**63
    return {
        "key": key,
        "value": value,
        "offset": batch.header.base_offset + index,
        "timestamp": EPOCH + timedelta(milliseconds=min(max(wrapped, -1), 253_402_300_799_999)),
        "timestampType": int(stamped),
        "headers": listed or None,
        "txid": batch.txid,
    }


def _varint(data: bytes, at: int, bytes_at_most: int) -> tuple[int, int]:
    value = 0
    for i in range(bytes_at_most):
        value |= (data[at + i] & 127) << 7 * i
        if data[at + i] < 128:
            value &= 2**64 - 1
            return (value >> 1) ^ -(value & 1), at + i + 1
    raise ValueError


def _nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at, 5)
    if size < -1 or at + size > len(data):
        raise ValueError
    return (None, at) if size == -1 else (data[at : at + size], at + size)
