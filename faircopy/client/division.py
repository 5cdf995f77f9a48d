"""A batch that is larger than its topic takes becomes two. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.client.codecs import compressed
from faircopy.wire.batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
)
from faircopy.wire.compression import Bytes
from faircopy.wire.records import NewRecord, Record, build_batch, decode_records, with_crc

SEQUENCES = 1 << 31
NO_SEQUENCE = -1


def divided(batch: Bytes, middle: int) -> tuple[bytes, bytes]:
    """Two batches with the records of one: those before number `middle`, and the others. Sequence numbers and
    compression stay.
    """
    header, records = read_header(batch), list(decode_records(batch))
    return _part(header, records[:middle], header.base_sequence), _part(
        header, records[middle:], following(header.base_sequence, middle)
    )


def following(sequence: int, records: int) -> int:
    """The sequence number after so many records."""
    return NO_SEQUENCE if sequence == NO_SEQUENCE else (sequence + records) % SEQUENCES


def _part(header: BatchHeader, records: Iterable[Record], sequence: int) -> bytes:
    plain = build_batch(
        [NewRecord(record.value, record.key, record.timestamp_ms, record.headers) for record in records],
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=sequence,
        transactional=bool(header.attributes & TRANSACTIONAL),
    )
    return in_compression(plain, header.attributes & COMPRESSION_MASK)


def in_compression(plain: bytes, codec: int) -> bytes:
    """A batch that is not compressed, under a compression."""
    if not codec:
        return plain
    header, section = read_header(plain), bytes(compressed(codec, memoryview(plain)[HEADER_BYTES:]))
    length = HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(section)
    return with_crc(
        HEADER.pack(*header._replace(length=length, attributes=header.attributes | codec)) + section
    )
