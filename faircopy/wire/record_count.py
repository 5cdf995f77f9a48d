"""Checks that a batch holds as many records as its header says. It steps from length to length. On its way
it passes the records' timestamps; it reads nothing else of them.

Consumers count offsets by the header. A batch that claims 1,000 records and holds one leaves a hole of 999
offsets, which no later write can fill. So Produce counts the records of each batch exactly. The
greatest timestamp must be true, too, for searches by time (`wire/timestamps.py`). (The other fields of a
record are its producer's own affair.)

Consecutive records often have the same length. Their lengths are then at equal distances, and a slice with
that stride compares a hundred of them at once. Where lengths differ, a loop steps over the records one by
one.
"""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter, length_hint
from typing import NoReturn

from faircopy.wire.batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    SMALLEST_RECORD_BYTES,
    BatchHeader,
    InvalidBatch,
)
from faircopy.wire.compression import NONE, Bytes, TooLargeError, decompress
from faircopy.wire.timestamps import VARINT_BYTES_MAX, Timestamps

COMPRESSED_BYTES_AT_ONCE = 64 << 10  # of one batch
SECTION_BYTES_AT_ONCE = 512 << 10  # decompressed, of one request
RECORDS_AT_ONCE = 10_000  # of one request

_COMPARED = 128  # lengths at a time; more where all were the same
_WORTH_COMPARING = 16
_SINGLY = 32  # records from the first attempt to compare to the second
_LENGTH_BYTES_MAX = 5
_HEAD_BYTES_MAX = _LENGTH_BYTES_MAX + 1 + VARINT_BYTES_MAX  # length, attributes, timestamp


class CountingBudget:
    """How much of one request may be counted at once, which takes some milliseconds. Threads count the rest,
    in steps."""

    __slots__ = ("is_exceeded", "records", "section_bytes")

    def __init__(self) -> None:
        self.is_exceeded = False
        self.records = RECORDS_AT_ONCE
        self.section_bytes = SECTION_BYTES_AT_ONCE


def count_records(batch: memoryview, header: BatchHeader, budget: CountingBudget, times: Timestamps) -> bool:
    """Count the records, if the budget allows, and give `times` their timestamps; false if it does not.

    Raises InvalidBatch, RecordsError.
    """
    codec = header.attributes & COMPRESSION_MASK
    section = batch[HEADER_BYTES:] if codec == NONE else _decompressed(codec, batch[HEADER_BYTES:], budget)
    if section is None:
        budget.is_exceeded = True
        return False
    records = header.records
    ensure_room(len(section), records)
    if records > budget.records:
        budget.is_exceeded = True
        return False
    budget.records -= records
    skip = _skip if records > _WORTH_COMPARING else _skip_singly
    end, left = skip(memoryview(section), 0, records, times)
    if left or end != len(section):
        _complain(end - len(section), left)
    return True


def _decompressed(codec: int, compressed: memoryview, budget: CountingBudget) -> Bytes | None:
    if len(compressed) > COMPRESSED_BYTES_AT_ONCE or not budget.section_bytes:
        return None
    try:
        section = decompress(codec, compressed, budget.section_bytes)
    except TooLargeError:
        budget.section_bytes = 0
        return None
    budget.section_bytes -= len(section)
    return section


def ensure_room(section_bytes: int, records: int) -> None:
    """Raise InvalidBatch if that many records can't fit into that many bytes, however small they are. This
    catches most false counts."""
    if records * SMALLEST_RECORD_BYTES > section_bytes:
        raise InvalidBatch(f"record batch counts {records} records, and holds {section_bytes} bytes of them")


class RecordCounter:
    """Counts the records of a section that comes in pieces, and gives `times` their timestamps: `feed` each
    piece, then `finish`.
    """

    def __init__(self, records: int, times: Timestamps) -> None:
        self.left = records
        self._times = times
        self._skipped_bytes = 0  # of the next piece: the rest of the last record
        self._rest = b""  # of the last piece: the start of a record, up to its timestamp

    def feed(self, piece: Bytes) -> None:
        """Count the records that begin in a piece. Raises InvalidBatch."""
        section = memoryview(self._rest + bytes(piece) if self._rest else piece)
        at, self.left = _skip(section, self._skipped_bytes, self.left, self._times)
        self._skipped_bytes = max(0, at - len(section))
        self._rest = section[at:].tobytes()
        if self._rest and not self.left:
            _complain(-len(self._rest), 0)

    def finish(self) -> None:
        """Raise InvalidBatch unless all records were there and complete."""
        if self.left or self._skipped_bytes:
            _complain(self._skipped_bytes, self.left)


def _complain(beyond_bytes: int, left: int) -> NoReturn:
    """Raise the error for `left` missing records, or a section that ends `beyond_bytes` too early."""
    if left:
        raise InvalidBatch(f"record batch counts {left} more records than it holds")
    if beyond_bytes > 0:
        raise InvalidBatch(f"record batch ends {beyond_bytes} bytes before its last record does")
    raise InvalidBatch("bytes follow the last record of the batch")


def _skip(section: memoryview, at: int, records: int, times: Timestamps) -> tuple[int, int]:
    """Skip up to `records` records, the first of which begins at byte `at`. Give `times` their timestamps.

    Returns the byte where the next one begins, which may lie beyond the section, and how many were not
    skipped. A record whose timestamp is cut off is not skipped.
    """
    singly, compared = _SINGLY, _COMPARED
    while records > _WORTH_COMPARING and at < len(section):
        at, alike = _skip_alike(section, at, min(records, compared), times)
        records -= alike
        if alike == compared:
            compared *= 2
        if alike < _WORTH_COMPARING:
            stepped = min(records, singly)
            at, left = _skip_singly(section, at, stepped, times)
            records -= stepped - left
            if left:
                break
            singly *= 2  # where lengths differ, the next ones mostly differ too
    else:
        return _skip_singly(section, at, records, times)
    return at, records


def _skip_alike(section: memoryview, at: int, records: int, times: Timestamps) -> tuple[int, int]:
    """Skip the records, out of the next `records`, that are as long as the first. Returns the next byte, and
    how many were skipped."""
    heads = len(section) - _HEAD_BYTES_MAX
    if at >= heads:
        return at, 0
    size, body = _number(section, at, _LENGTH_BYTES_MAX)
    stride = body - at + (size >> 1)
    if size & 1 or stride >= heads:
        return at, 0
    end = min(at + records * stride, heads)
    alike = min(_same(section[byte:end:stride]) for byte in range(at, body))
    times_end = body + 1 + (alike - 1) * stride + 1
    times.add(lambda byte: section[body + 1 + byte : times_end + byte : stride].tobytes(), alike)
    return at + alike * stride, alike


def _same(lengths: memoryview) -> int:
    """How many bytes at the start are equal to the first one."""
    copied = lengths.tobytes()
    return len(copied) - len(copied.lstrip(copied[:1]))


def _skip_singly(section: memoryview, at: int, records: int, times: Timestamps) -> tuple[int, int]:
    """As `_skip`, record by record."""
    at, left, places = _step(section[: max(0, len(section) - _HEAD_BYTES_MAX)], at, records)
    if len(places) == 1:
        places *= 2
    if places:
        byte_of = itemgetter(*places)
        times.add(lambda byte: bytes(byte_of(section[byte:])), len(places))
    while left and at < len(section):
        try:
            at = _skip_last(section, at, times)
        except IndexError:
            break
        left -= 1
    return at, left


def _step(heads: memoryview, at: int, records: int) -> tuple[int, int, list[int]]:
    """Step over the records that begin in `heads`. Returns the byte after them, how many are left, and where
    the timestamps are. Lengths are zigzag: an odd one is negative.
    """
    each = repeat(None, records)
    places: list[int] = []
    try:
        for _ in each:
            size = heads[at]
            if size & 1:
                raise InvalidBatch("a record of the batch has a negative length")
            if size < 128:
                places.append(at + 2)
                at += (size >> 1) + 1
            elif (high := heads[at + 1]) < 128:
                places.append(at + 3)
                at += (high << 6) + (size >> 1) - 62
            else:
                size, body = _number(heads, at, _LENGTH_BYTES_MAX)
                places.append(body + 1)
                at = body + (size >> 1)
    except IndexError:
        return at, length_hint(each) + 1, places
    return at, 0, places


def _skip_last(section: memoryview, at: int, times: Timestamps) -> int:
    """Skip one record near the end of the section. Raises IndexError if its timestamp is cut off."""
    size, body = _number(section, at, _LENGTH_BYTES_MAX)
    if size & 1:
        raise InvalidBatch("a record of the batch has a negative length")
    _, end = _number(section, body + 1, VARINT_BYTES_MAX)
    delta = section[body + 1 : end].tobytes() + bytes(VARINT_BYTES_MAX)
    times.add(lambda byte: delta[byte : byte + 1], 1)
    return body + (size >> 1)


def _number(section: memoryview, at: int, bytes_max: int) -> tuple[int, int]:
    """The number at a byte, still in zigzag, and the byte after it."""
    value = 0
    for number in range(bytes_max):
        byte = section[at + number]
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value, at + number + 1
    raise InvalidBatch(f"a number in a record of the batch takes more than {bytes_max} bytes")
