"""The headers of one record, read in a loop, as `headers.py` reads those of many records in rounds."""

from __future__ import annotations

from array import array

LEAST_BYTES = 2  # of a header: an empty key, and a null
PARTS = 4
_TOO_LONG = -2


def read_headers(data: memoryview, at: int, end: int, count: int, found: array[int]) -> bool:
    """Add to `found` the places of `count` headers, which begin at `at` and fill the record up to `end`. Each
    has PARTS numbers: where its key is, its length, where its value is, its length (-1 for a null). If there
    is something else, this returns False, and `found` is as it was.

    After `end`, there are some more bytes in `data` (`fields.PADDING_BYTES`).
    """
    before = len(found)
    for _ in range(count):
        key_length, key_at = _length(data, at)
        if key_length < 0 or key_at + key_length >= end:
            break
        value_length, value_at = _length(data, key_at + key_length)
        at = value_at + max(value_length, 0)
        if value_length < -1 or at > end:
            break
        found.extend((key_at, key_length, value_at, value_length))
    if at == end and len(found) - before == count * PARTS:
        return True
    del found[before:]
    return False


def _length(data: memoryview, at: int) -> tuple[int, int]:
    """The varint at `at`, and where it ends; _TOO_LONG for one of more than five bytes."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
    return _TOO_LONG, at
