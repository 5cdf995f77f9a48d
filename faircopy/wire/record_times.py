"""The times of a batch's records, without decoding the rest: only lengths and timestamp deltas are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faircopy.wire.batch import LOG_APPEND_TIME, BatchHeader
from faircopy.wire.compression import Bytes, RecordsError
from faircopy.wire.records import timestamp_of
from faircopy.wire.timestamps import VARINT_BYTES_MAX

_LENGTH_BYTES_MAX = 5


class TimedRecord(NamedTuple):
    """A record's number in its batch, and its time in milliseconds."""

    number: int
    time_ms: int


def find_record_by_time(section: Bytes, header: BatchHeader, first: int, time_ms: int) -> TimedRecord | None:
    """The first record, from number `first` on, whose time is `time_ms` or later; None if there is none.

    `section` holds the records of a batch, decompressed. Raises RecordsError if lengths or times are invalid.
    """
    return next((record for record in _timed(section, header, first) if record.time_ms >= time_ms), None)


def find_greatest_time(section: Bytes, header: BatchHeader, first: int) -> TimedRecord | None:
    """The first record, from number `first` on, that has the greatest time; None if there are no more.

    Raises RecordsError as `find_record_by_time` does.
    """
    return max(_timed(section, header, first), key=lambda record: record.time_ms, default=None)


def _timed(section: Bytes, header: BatchHeader, first: int) -> Iterator[TimedRecord]:
    """The records from number `first` on."""
    if header.attributes & LOG_APPEND_TIME:
        return (TimedRecord(number, header.max_timestamp_ms) for number in range(first, header.records))
    return _timed_by_delta(memoryview(section), header, first)


def _timed_by_delta(section: memoryview, header: BatchHeader, first: int) -> Iterator[TimedRecord]:
    at = 0
    try:
        for number in range(header.records):
            size = section[at]
            at += 1
            if size >= 128:
                size, at = _varint(section, at - 1, _LENGTH_BYTES_MAX)
            record_end = at + (size >> 1)
            if size & 1 or record_end > len(section):
                raise RecordsError("searching a record batch by time: a record does not fit in it")
            if number >= first:
                delta, _ = _varint(section, at + 1, VARINT_BYTES_MAX)
                yield TimedRecord(number, timestamp_of(header, (delta >> 1) ^ -(delta & 1)))
            at = record_end
    except IndexError:
        raise RecordsError("searching a record batch by time: it ends before its records do") from None


def _varint(section: memoryview, at: int, bytes_max: int) -> tuple[int, int]:
    """The varint at a byte, still in zigzag, and the byte after it."""
    value = 0
    for number in range(bytes_max):
        byte = section[at + number]
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value & (2**64 - 1), at + number + 1
    raise RecordsError("searching a record batch by time: a number takes too many bytes")
