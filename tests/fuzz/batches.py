"""Record batches: what Produce takes must be fit for the log, for its readers, and for a search by time."""

from __future__ import annotations

from pathlib import Path

from crc32c import crc32c

from faircopy.datalog.segment import file_name
from faircopy.datalog.time_search import find_in_batch
from faircopy.wire.batch import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    BatchError,
    check_logged,
    check_produced,
    placed_prefix,
    read_header,
    with_log_append_time,
)
from faircopy.wire.compression import RecordsError, decompress
from faircopy.wire.records import decode_records
from tests.fuzz.choices import Choices

DECOMPRESSED_BYTES_MAX = 1 << 20
BASE_OFFSET = 1_000
NOW_MS = 1_790_000_000_000
INT64 = range(-(2**63), 2**63)
CODECS = range(8)
SEGMENT = Path("/log") / file_name(BASE_OFFSET)


def feed_batch(data: bytes) -> None:
    """The first byte says whether length and CRC are made to fit; the rest is the batch."""
    choices = Choices(data)
    is_signed, batch = bool(choices.number() & 1), choices.rest()
    check_batch(signed(batch) if is_signed else batch)


def signed(batch: bytes) -> bytes:
    """The batch with the length that it has, and the CRC of its bytes."""
    if len(batch) < HEADER_BYTES:
        return batch
    changed = bytearray(batch)
    changed[8:12] = (len(batch) - LENGTH_OVERHEAD_BYTES).to_bytes(4, "big")
    changed[17:CRC_START] = crc32c(memoryview(changed)[CRC_START:]).to_bytes(4, "big")
    return bytes(changed)


def check_batch(batch: bytes) -> None:
    """Do with a batch what Produce and all readers of the log do."""
    try:
        check_produced(memoryview(batch))
    except BatchError:
        return
    for kept in (batch, bytes(with_log_append_time(memoryview(batch), NOW_MS))):
        check_kept(kept)


def check_kept(batch: bytes) -> None:
    """What was taken is sound in the log, and its records are read or refused."""
    header = read_header(batch)
    logged = placed_prefix(BASE_OFFSET, header.length, 0) + batch[16:]
    header = check_logged(logged, BASE_OFFSET, 0)
    read = 0
    try:
        for record in decode_records(logged, DECOMPRESSED_BYTES_MAX):
            assert record.offset == BASE_OFFSET + read
            assert record.timestamp_ms in INT64
            read += 1
        assert read == header.records
    except RecordsError:
        pass
    for time_ms in (header.max_timestamp_ms, header.base_timestamp_ms, INT64[-1]):
        found = find_in_batch(logged, header, time_ms, BASE_OFFSET)
        assert BASE_OFFSET <= found.offset <= header.last_offset
        assert found.timestamp_ms in INT64


def feed_compressed(data: bytes) -> None:
    """The first byte chooses the codec, the rest is compressed."""
    choices = Choices(data)
    codec = choices.one_of(CODECS) & COMPRESSION_MASK
    try:
        output = decompress(codec, choices.rest(), DECOMPRESSED_BYTES_MAX)
    except RecordsError:
        return
    assert len(output) <= DECOMPRESSED_BYTES_MAX
