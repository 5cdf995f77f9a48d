"""Finding a record by its time, without decoding the others: only lengths and times are read."""

from __future__ import annotations

from faircopy.wire.batch import LOG_APPEND_TIME, BatchHeader
from faircopy.wire.compression import Bytes, RecordsError
from faircopy.wire.records import timestamp_of

_LENGTH_BYTES_MAX = 5
_TIMESTAMP_BYTES_MAX = 10


def find_record_by_time(
    section: Bytes, header: BatchHeader, time_ms: int, first: int
) -> tuple[int, int] | None:
    """Number and time of the first record, from number `first` on, whose time is `time_ms` or later; None if
    there is none.

    `section` holds the records of a batch, decompressed. Raises RecordsError if lengths or times are invalid.
    """
    if header.attributes & LOG_APPEND_TIME:
        found = header.max_timestamp_ms >= time_ms and first < header.records
        return (first, header.max_timestamp_ms) if found else None
    data = memoryview(section)
    at = 0
    try:
        for number in range(header.records):
            size = data[at]
            at += 1
            if size >= 128:
                size, at = _varint(data, at - 1, _LENGTH_BYTES_MAX)
            record_end = at + (size >> 1)
            delta = data[at + 1]
            if delta >= 128:
                delta, _ = _varint(data, at + 1, _TIMESTAMP_BYTES_MAX)
            if size & 1 or record_end > len(data):
                raise RecordsError("searching a record batch by time: a record does not fit in it")
            if number >= first and (found_ms := timestamp_of(header, (delta >> 1) ^ -(delta & 1))) >= time_ms:
                return number, found_ms
            at = record_end
    except IndexError:
        raise RecordsError("searching a record batch by time: it ends before its records do") from None
    return None


def _varint(data: memoryview, at: int, bytes_max: int) -> tuple[int, int]:
    """The varint at a byte, still in zigzag, and the byte after it."""
    value = 0
    for number in range(bytes_max):
        byte = data[at + number]
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value & (2**64 - 1), at + number + 1
    raise RecordsError("searching a record batch by time: a number takes too many bytes")
