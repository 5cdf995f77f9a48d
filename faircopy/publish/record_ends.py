"""Where records end: each begins with its length, and only where it ends is the next one's.

This is the one step that is done record by record, in Python. But records often have the same size, many in a
row. Then the lengths lie at equal distances, and are compared with one slice: if the first record is followed
by another length that is the same, the next one is where it is expected, and so on up to the first that
differs. The layout of a record is in `faircopy.wire.records`. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from faircopy.wire.compression import Bytes

_SMALLEST_ZIGZAG_LENGTH = 12  # 6 bytes follow the length of the smallest record
_ZIGZAG_NO_LENGTH = 3  # -2: lengths go down to -1, which is null
_LENGTH_BYTES = 5
_ALIKE_BEFORE_COMPARING = 4  # below that, a comparison costs more than it saves
_COMPARED_FIRST, _COMPARED_GROWTH = 64, 8


class LastRecord(NamedTuple):
    """The last of some records: where it began and ended, and how many bytes its length took."""

    begin: int
    end: int
    length_bytes: int


def walk(data: Bytes, at: int, stop: int, records: int, ends: list[int]) -> None:
    """Append to `ends` the end of each of up to `records` records that begin at `at` and end by `stop`.

    Fewer are appended if a length is invalid: then the start of the following records is not known, so they
    can't be decoded.
    """
    before = len(ends)
    until = before + records
    while len(ends) < until:
        last = singly(data, at, until - len(ends), ends)
        if last is None:
            break
        alike(data, last, stop, until - len(ends), ends)
        at = ends[-1]
    del ends[bisect_right(ends, stop, before) :]


def singly(data: Bytes, at: int, records: int, ends: list[int]) -> LastRecord | None:
    """Append the ends of up to `records` records, until some have had the length of the one before. Returns
    the last of them; None if there are no more, or a length is invalid or missing.
    """
    append, before, alike_left = ends.append, -1, _ALIKE_BEFORE_COMPARING
    try:
        for _ in range(records):
            length = data[at]
            if length < 128:
                at += 1
            elif (high := data[at + 1]) < 128:
                length += (high << 7) - 128
                at += 2
            else:
                length, at = long_varint(data, at)
            if length < _SMALLEST_ZIGZAG_LENGTH or length & 1:
                break
            at += length >> 1
            append(at)
            if length == before:
                alike_left -= 1
                if not alike_left:
                    return LastRecord(ends[-2], at, at - (length >> 1) - ends[-2])
            before = length
    except IndexError:
        pass
    return None


def alike(data: Bytes, last: LastRecord, stop: int, records: int, ends: list[int]) -> None:
    """Append the ends of up to `records` records that follow, as long as their lengths are that of `last`."""
    size, at, compared = last.end - last.begin, last.end, _COMPARED_FIRST
    while records > 0 and at < stop:
        count = min(records, compared)
        for place in range(last.length_bytes):
            lengths = bytes(data[at + place : min(at + size * count, stop) : size])
            count = len(lengths) - len(lengths.lstrip(data[last.begin + place : last.begin + place + 1]))
        ends.extend(range(at + size, at + size * count + 1, size))
        if count < min(records, compared):
            return
        at, records, compared = at + size * count, records - count, compared * _COMPARED_GROWTH


def long_varint(data: Bytes, at: int) -> tuple[int, int]:
    """The varint at `at`, still in zigzag, and where it ends; -2 stands for one that is too long."""
    value = 0
    for shift in range(0, 7 * _LENGTH_BYTES, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    return _ZIGZAG_NO_LENGTH, at
