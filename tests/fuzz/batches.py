"""Record batches: what Produce takes must be fit for the log, for its readers, and for a search by time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cramjam
from crc32c import crc32c

from faircopy.datalog.time_search import TimedOffset, find_in_batch
from faircopy.wire.batch import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_MASK,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LOG_APPEND_TIME,
    BatchError,
    BatchHeader,
    check_logged,
    check_produced,
    placed_prefix,
    read_header,
    with_log_append_time,
)
from faircopy.wire.compression import RecordsError, decompress
from faircopy.wire.record_count import CountingBudget, RecordCounter, count_records
from faircopy.wire.records import decode_records, varint
from faircopy.wire.timestamps import TimeRange, TimestampClaim, TimestampRange
from tests.fuzz.choices import Choices

DECOMPRESSED_BYTES_MAX = 1 << 20
BASE_OFFSET = 1_000
NOW_MS = 1_790_000_000_000
RECORDS_MAX = 4
INT64 = range(-(2**63), 2**63)
INTEGERS = [0, 1, -1, -2, 5_000, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63)]
ENCODERS: dict[int, Callable[[bytes], Any]] = {
    1: cramjam.gzip.compress,
    2: cramjam.snappy.compress_raw,
    3: cramjam.lz4.compress,
    4: cramjam.zstd.compress,
}
CODECS = range(8)


def feed_batch(data: bytes) -> bool:
    """The first byte says whether length and CRC are made to fit, and whether the batch has odd parts."""
    choices = Choices(data)
    kind = choices.number()
    batch = odd_batch(choices) if kind & 2 else choices.rest()
    return check_batch(signed(batch) if kind & 1 else batch)


def odd_batch(choices: Choices) -> bytes:
    """A batch of any codec, with sound or odd fields, and a header that fits more often than not."""
    count = 1 + choices.number() % RECORDS_MAX
    section = b"".join(odd_record(index, choices) for index in range(count))
    oddity = choices.number()
    attributes = choices.number() & 0x1F
    compress = ENCODERS.get(attributes & COMPRESSION_MASK)
    claimed = count if oddity & 3 else choices.number(4) & 0x7FFFFFFF
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=claimed - 1 if oddity & 0xC else choices.signed(4),
        base_timestamp_ms=odd_integer(choices),
        max_timestamp_ms=odd_integer(choices),
        producer_id=choices.signed(1),
        producer_epoch=choices.signed(1),
        base_sequence=choices.signed(4),
        records=claimed,
    )
    return HEADER.pack(*header) + (bytes(compress(section)) if compress and oddity & 0x10 else section)


def odd_record(index: int, choices: Choices) -> bytes:
    """A record, of which each field may be another than it should."""
    oddity = choices.number()
    parts = [
        b"\0",
        varint(odd_integer(choices)) if oddity & 1 else b"\0",
        varint(index) if not oddity & 2 else choices.take(5),
        odd_bytes(choices, oddity & 4),
        odd_bytes(choices, oddity & 8),
    ]
    headers = choices.number() % 4
    parts.append(varint(headers if not oddity & 0x10 else odd_integer(choices)))
    parts += [odd_bytes(choices, oddity & 0x20) for _ in range(2 * headers)]
    body = b"".join(parts)
    return varint(len(body) if not oddity & 0x40 else odd_integer(choices)) + body


def odd_integer(choices: Choices) -> int:
    """One of the numbers at which something ends, or any."""
    number = choices.number()
    return INTEGERS[number] if number < len(INTEGERS) else choices.signed(8)


def odd_bytes(choices: Choices, is_odd: int) -> bytes:
    """Bytes with their length, or with another."""
    content = choices.take(choices.number() % 16)
    return varint(odd_integer(choices) if is_odd else len(content)) + content


def signed(batch: bytes) -> bytes:
    """The batch with the length that it has, and the CRC of its bytes."""
    if len(batch) < HEADER_BYTES:
        return batch
    changed = bytearray(batch)
    changed[8:12] = (len(batch) - LENGTH_OVERHEAD_BYTES).to_bytes(4, "big")
    changed[17:CRC_START] = crc32c(memoryview(changed)[CRC_START:]).to_bytes(4, "big")
    return bytes(changed)


def as_sent(batch: bytes) -> bytes:
    """The batch as a producer may send it: only the broker says LogAppendTime."""
    if len(batch) < HEADER_BYTES or not batch[ATTRIBUTES_OFFSET + 1] & LOG_APPEND_TIME:
        return batch
    changed = bytearray(batch)
    changed[ATTRIBUTES_OFFSET + 1] ^= LOG_APPEND_TIME
    return signed(bytes(changed))


def check_batch(batch: bytes) -> bool:
    """Do with a batch what Produce and all readers of the log do; whether it is taken."""
    batch = as_sent(batch)
    view = memoryview(batch)
    try:
        header = check_produced(view)
        if not count_records(view, header, CountingBudget(), TimestampClaim(header)):
            return False
        decoded = TimestampRange(header)
        count_records(view, header, CountingBudget(), decoded)
    except (BatchError, RecordsError):
        return False
    check_in_pieces(batch, decoded.range)
    for kept in (batch, bytes(with_log_append_time(memoryview(batch), NOW_MS))):
        check_kept(kept)
    return True


def check_in_pieces(batch: bytes, times: TimeRange) -> None:
    """What was counted at once is counted in pieces as well, and a claim is believed if it is true."""
    header = read_header(batch)
    section = decompress(header.attributes & COMPRESSION_MASK, batch[HEADER_BYTES:], DECOMPRESSED_BYTES_MAX)
    size = 1 + header.crc % 40
    claim, decoded = TimestampClaim(header), TimestampRange(header)
    for counter in (RecordCounter(header.records, claim), RecordCounter(header.records, decoded)):
        for at in range(0, len(section), size):
            counter.feed(section[at : at + size])
        counter.finish()
    assert decoded.range == times
    assert claim.borne_out(needs_least=True) in {None, times}
    least_or_base = TimeRange(header.base_timestamp_ms, times.greatest_ms)
    assert claim.borne_out(needs_least=False) in {None, least_or_base}


def check_kept(batch: bytes) -> None:
    """What was taken is sound in the log, and its records are read or refused."""
    header = read_header(batch)
    logged = placed_prefix(BASE_OFFSET, header.length, 0) + batch[16:]
    header = check_logged(logged, BASE_OFFSET, range(1))
    times = None
    try:
        records = list(decode_records(logged, DECOMPRESSED_BYTES_MAX))
        assert [record.offset for record in records] == [*range(BASE_OFFSET, BASE_OFFSET + header.records)]
        times = [TimedOffset(record.offset, record.timestamp_ms) for record in records]
    except RecordsError:
        pass
    for time_ms in (header.max_timestamp_ms, header.base_timestamp_ms, INT64[-1]):
        found = find_in_batch(logged, header, time_ms, BASE_OFFSET)
        assert found is None or (found.offset <= header.last_offset and found.timestamp_ms in INT64)
        if times is not None:
            assert found == next((each for each in times if each.timestamp_ms >= time_ms), None)


def feed_compressed(data: bytes) -> bool:
    """The first byte chooses the codec, the rest is compressed."""
    choices = Choices(data)
    codec = choices.one_of(CODECS) & COMPRESSION_MASK
    try:
        output = decompress(codec, choices.rest(), DECOMPRESSED_BYTES_MAX)
    except RecordsError:
        return False
    assert len(output) <= DECOMPRESSED_BYTES_MAX
    return True
