"""Kafka record batches, format v2, seen from outside: 61 bytes of header, and opaque records.

Layout (big-endian), as KIP-98 fixed it:

     0  base offset             i64   outside the CRC; set when the batch is copied into the log
     8  batch length            i32   of what follows these 12 bytes
    12  partition leader epoch  i32   outside the CRC; set when the batch is copied into the log
    16  magic                   i8    2
    17  crc                     u32   CRC32C of byte 21 to the end
    21  attributes              i16   0-2 compression, 3 LogAppendTime, 4 transactional, 5 control
    23  last offset delta       i32
    27  base timestamp          i64   milliseconds
    35  max timestamp           i64   milliseconds
    43  producer id             i64   -1 for a producer that is not idempotent
    51  producer epoch          i16
    53  base sequence           i32
    57  records count           i32
    61  records
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from faircopy.errors import FaircopyError

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
assert HEADER.size == HEADER_BYTES

PLACE = struct.Struct(">qi")  # base offset and length: enough to step from batch to batch
LENGTH_OVERHEAD_BYTES = 12
MAGIC_OFFSET = 16
CRC_OFFSET = 17
CRC_START = 21
ATTRIBUTES_OFFSET = 21
MAX_TIMESTAMP_OFFSET = 35
SMALLEST_RECORD_BYTES = 7  # its own length, and one byte for each field

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_UINT32 = struct.Struct(">I")


class BatchHeader(NamedTuple):
    """The header of one record batch, field by field; times in milliseconds."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + LENGTH_OVERHEAD_BYTES

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2^31-1 to 0 (KIP-98)."""
        return (self.base_sequence + self.records - 1) & 0x7FFFFFFF


class BatchError(FaircopyError):
    """The bytes that a client sent are not an acceptable record batch."""


class CorruptBatch(BatchError):
    """The batch is cut short, or its CRC does not match its bytes."""


class OldMagic(BatchError):
    """The batch is in a format older than v2."""


class InvalidBatch(BatchError):
    """The batch is complete, but its content is not allowed."""


class InvalidTimestamp(BatchError):
    """The batch has times that no producer may send."""


def read_header(buffer: bytes | memoryview | bytearray, at: int = 0) -> BatchHeader:
    """The header of the batch that starts at byte `at`; nothing is checked."""
    return BatchHeader._make(HEADER.unpack_from(buffer, at))


def check_produced(batch: memoryview) -> BatchHeader:
    """Check one batch from a producer, and return its header. This does not look at the records:
    `wire/record_count.py` counts them.

    Raises OldMagic, CorruptBatch, InvalidBatch or InvalidTimestamp.
    """
    if len(batch) < HEADER_BYTES:
        if len(batch) > MAGIC_OFFSET and batch[MAGIC_OFFSET] < 2:
            raise OldMagic(
                f"record batch has magic {batch[MAGIC_OFFSET]}: send format v2 (Kafka 0.11 or newer)"
            )
        raise CorruptBatch(f"record batch of {len(batch)} bytes is shorter than a header")
    header = read_header(batch)
    if header.magic != 2:
        raise OldMagic(f"record batch has magic {header.magic}: send format v2 (Kafka 0.11 or newer)")
    if header.size_bytes != len(batch):
        if HEADER_BYTES <= header.size_bytes < len(batch):
            raise InvalidBatch("more than one record batch for one partition in a Produce request")
        raise CorruptBatch(f"record batch says {header.size_bytes} bytes, {len(batch)} came")
    if crc32c(batch[CRC_START:]) != header.crc:
        raise CorruptBatch("record batch does not match its CRC")
    if header.attributes & CONTROL:
        raise InvalidBatch("control batches are not for producers to send")
    if header.attributes & LOG_APPEND_TIME:
        raise InvalidTimestamp(
            "a producer's record batch has the timestamp type LogAppendTime: send CreateTime"
        )
    if header.records <= 0 or header.last_offset_delta != header.records - 1:
        raise InvalidBatch(
            f"record batch counts {header.records} records, but its last offset delta is "
            f"{header.last_offset_delta}"
        )
    if header.attributes & COMPRESSION_MASK > 4:
        raise InvalidBatch(f"record batch has unknown compression {header.attributes & COMPRESSION_MASK}")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise InvalidBatch("idempotent record batch without producer epoch or sequence")
    if header.is_transactional and header.producer_id < 0:
        raise InvalidBatch("transactional record batch without a producer id")
    return header


def check_logged(batch: bytes | memoryview, base_offset: int, leader_epochs: range) -> BatchHeader:
    """Check one whole batch that was read from a log at this offset, where batches bear one of these leader
    epochs. Return its header.

    Raises CorruptBatch or InvalidBatch.
    """
    if len(batch) < HEADER_BYTES:
        raise CorruptBatch(f"record batch of {len(batch)} bytes is shorter than a header")
    header = read_header(batch)
    if header.size_bytes != len(batch):
        raise CorruptBatch(f"record batch says {header.size_bytes} bytes, and has {len(batch)}")
    if crc32c(memoryview(batch)[CRC_START:]) != header.crc:
        raise CorruptBatch("record batch does not match its CRC")
    if header.magic != 2 or header.records <= 0 or header.last_offset_delta != header.records - 1:
        raise InvalidBatch("no record batch of format v2 with contiguous offsets")
    if header.base_offset != base_offset or header.leader_epoch not in leader_epochs:
        first, last = leader_epochs.start, leader_epochs.stop - 1
        epochs = f"{first}" if first == last else f"{first} to {last}"
        raise InvalidBatch(
            f"record batch says offset {header.base_offset} of leader epoch {header.leader_epoch}, "
            f"and should be {base_offset} of {epochs}"
        )
    return header


def placed_prefix(base_offset: int, length: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of a batch at its place in a log; the rest of the batch is copied unchanged."""
    return PLACE.pack(base_offset, length) + _INT32.pack(leader_epoch)


def with_log_append_time(batch: memoryview, now_ms: int) -> bytearray:
    """A copy of `batch` stamped with the broker's time, for topics with timestamps of type LogAppendTime."""
    return _with_max_timestamp(
        batch, now_ms, _INT16.unpack_from(batch, ATTRIBUTES_OFFSET)[0] | LOG_APPEND_TIME
    )


def with_max_timestamp(batch: memoryview, max_timestamp_ms: int) -> bytearray:
    """A copy of `batch` whose header has this greatest timestamp."""
    return _with_max_timestamp(batch, max_timestamp_ms, _INT16.unpack_from(batch, ATTRIBUTES_OFFSET)[0])


def _with_max_timestamp(batch: memoryview, max_timestamp_ms: int, attributes: int) -> bytearray:
    # Both fields lie inside the CRC, so the CRC is computed again.
    copied = bytearray(batch)
    _INT16.pack_into(copied, ATTRIBUTES_OFFSET, attributes)
    _INT64.pack_into(copied, MAX_TIMESTAMP_OFFSET, max_timestamp_ms)
    _UINT32.pack_into(copied, CRC_OFFSET, crc32c(memoryview(copied)[CRC_START:]))
    return copied
