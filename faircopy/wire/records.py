"""The records of a Kafka v2 batch, one by one: for cold paths, tools and tests.

A record, as KIP-98 fixed it; every varint is zigzag, at most 5 bytes for lengths and 10 for the timestamp:

    length           varint  bytes that follow
    attributes       i8      unused
    timestamp delta  varint  milliseconds after the batch's base timestamp
    offset delta     varint  position in the batch: in a log without compaction, 0, 1, 2, ...
    key              varint length, or -1 for none; then the bytes
    value            varint length, or -1 for none; then the bytes
    headers          varint count; each a key (varint length, UTF-8) and a value (as above)

`faircopy.publish.columns` is the hot path, which turns whole runs of batches into Arrow columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from faircopy.wire.batch import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
)
from faircopy.wire.compression import Bytes, RecordsError, decompress

DECOMPRESSED_BYTES_AT_MOST = 128 * 1024 * 1024

_LENGTH_BITS = 35  # a varint of 5 bytes
_TIMESTAMP_BITS = 70  # a varint of 10 bytes
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One message at its place in the log; `key` and `value` are None if the producer sent none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class NewRecord(NamedTuple):
    """The input of `build_batch` for one record."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = 0
    headers: Headers = ()


def decode_records(batch: Bytes, limit_bytes: int = DECOMPRESSED_BYTES_AT_MOST) -> Iterator[Record]:
    """The records of one whole batch, in order; at most `limit_bytes` are decompressed.

    Raises RecordsError if the records do not match the header; those before the bad one have been yielded.
    """
    header = read_header(batch)
    section = decompress(header.attributes & COMPRESSION_MASK, batch[HEADER_BYTES:], limit_bytes)
    reader = _Reader(memoryview(section))
    for index in range(header.records):
        yield _record(reader, header, index)
    if reader.at != len(reader.data):
        raise _undecodable(header, f"{len(reader.data) - reader.at} bytes follow the last record")


def build_batch(
    messages: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    append_time_ms: int | None = None,
) -> bytes:
    """One uncompressed batch of `messages` (at least one). With `append_time_ms`, of LogAppendTime."""
    listed = list(messages)
    base_timestamp_ms = listed[0].timestamp_ms
    section = b"".join(_record_bytes(i, m, base_timestamp_ms) for i, m in enumerate(listed))
    newest_ms = max(message.timestamp_ms for message in listed)
    header = BatchHeader(
        base_offset=base_offset,
        length=HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(section),
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL * transactional | LOG_APPEND_TIME * (append_time_ms is not None),
        last_offset_delta=len(listed) - 1,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=newest_ms if append_time_ms is None else append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records=len(listed),
    )
    return with_crc(HEADER.pack(*header) + section)


def with_crc(batch: Bytes) -> bytes:
    """A copy of the whole batch with the correct CRC."""
    signed = bytearray(batch)
    struct.pack_into(">I", signed, 17, crc32c(memoryview(signed)[CRC_START:]))
    return bytes(signed)


def varint(value: int) -> bytes:
    """The zigzag varint of a signed 64-bit integer."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _undecodable(header: BatchHeader, why: str) -> RecordsError:
    return RecordsError(f"decoding the record batch at offset {header.base_offset}: {why}")


class _Reader:
    """Takes fields off the front of `data`; never beyond its end."""

    __slots__ = ("at", "data")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def varint(self, bits_at_most: int) -> int:
        value = 0
        for shift in range(0, bits_at_most, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= _UINT64_MAX  # ten bytes have room for more than 64 bits
                return (value >> 1) ^ -(value & 1)
        raise RecordsError(f"decoding records: the varint that ends at byte {self.at} is too long")

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise RecordsError(f"decoding records: {size} bytes wanted at byte {self.at} of {len(self.data)}")
        taken = bytes(self.data[self.at : end])
        self.at = end
        return taken

    def bytes_or_none(self) -> bytes | None:
        size = self.varint(_LENGTH_BITS)
        return None if size == -1 else self.take(size)


def _record(reader: _Reader, header: BatchHeader, index: int) -> Record:
    size = reader.varint(_LENGTH_BITS)
    end = reader.at + size
    reader.take(1)
    timestamp_ms = timestamp_of(header, reader.varint(_TIMESTAMP_BITS))
    offset_delta = reader.varint(_LENGTH_BITS)
    key, value, headers = reader.bytes_or_none(), reader.bytes_or_none(), _headers(reader)
    if reader.at != end:
        raise _undecodable(header, f"record {index} claims {size} bytes, and its fields take others")
    if offset_delta != index:
        raise _undecodable(header, f"record {index} has offset delta {offset_delta}")
    return Record(header.base_offset + index, timestamp_ms, key, value, headers)


def timestamp_of(header: BatchHeader, delta: int) -> int:
    """The time in milliseconds of a record with this timestamp delta."""
    if header.attributes & LOG_APPEND_TIME:
        return header.max_timestamp_ms
    # Wraps around as in Java's clients; otherwise a time that a client made up might not fit into a response.
    return (header.base_timestamp_ms + delta - _INT64_MIN & _UINT64_MAX) + _INT64_MIN


def _headers(reader: _Reader) -> Headers:
    count = reader.varint(_LENGTH_BITS)
    if not 0 <= count <= len(reader.data) - reader.at:
        raise RecordsError(f"decoding records: a record claims {count} headers")
    return tuple(_header(reader) for _ in range(count))


def _header(reader: _Reader) -> tuple[str, bytes | None]:
    # Java's clients read a key that is not UTF-8 in the same way.
    key = reader.take(reader.varint(_LENGTH_BITS)).decode("utf-8", "replace")
    return key, reader.bytes_or_none()


def _record_bytes(index: int, message: NewRecord, base_timestamp_ms: int) -> bytes:
    body = b"".join(
        (
            b"\0",
            varint(message.timestamp_ms - base_timestamp_ms),
            varint(index),
            _sized(message.key),
            _sized(message.value),
            varint(len(message.headers)),
            *(_sized(key.encode()) + _sized(value) for key, value in message.headers),
        )
    )
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data
