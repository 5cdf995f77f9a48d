"""The fields of many Kafka records at once, with Arrow's kernels instead of a loop over messages.

Only the ends of records are found one by one (`record_ends.walk`), since a record's length is known only
where the one before it ends. All else is done for thousands of records by one kernel: "the byte at each of
these positions", "add", "choose". Nothing is trusted: a record whose fields don't fill it exactly is marked
bad, and nothing outside the given bytes is read.

The layout of a record is in `faircopy.wire.records`. Positions and lengths are bytes.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

PADDING_BYTES = 32  # after the last record: more than the fields between two checks can take
_LENGTH_BYTES = 5
_TIMESTAMP_BYTES = 10
_INT64_MAX = 2**63 - 1
_SHIFT_MOST = 62

# A look-up in a small table is the cheapest kernel.
_LOW_BITS = pa.array([byte & 127 for byte in range(256)], pa.int64())
_SIGNED = pa.array([(byte >> 1) ^ -(byte & 1) for byte in range(256)], pa.int64())


ROWS_AT_MOST = 32 * 1024  # of a run of records; the constants below have an element for each
ROW_NUMBERS = pa.array(array("q", range(ROWS_AT_MOST)))


class Places(NamedTuple):
    """The places of parts of records, in int64 arrays with an element for each. Nulls have length -1."""

    key_at: pa.Array
    key_length: pa.Array
    value_at: pa.Array
    value_length: pa.Array
    headers_at: pa.Array
    header_count: pa.Array


class Fields(NamedTuple):
    """One element for each record. The places of a record that is not `good` are empty."""

    good: pa.Array
    timestamp_delta_ms: pa.Array
    offset_delta: pa.Array
    places: Places
    ends: pa.Array


def as_bytes(data: pa.Buffer) -> pa.Array:
    """The bytes of a buffer as an array of uint8, which kernels can take from."""
    return pa.Array.from_buffers(pa.uint8(), data.size, [None, data])


def read_fields(data: pa.Buffer, begins: pa.Array, ends: pa.Array) -> Fields:
    """The fields of the records in `data` that lie from `begins` (at their lengths) to `ends`.

    `data` has PADDING_BYTES after the last of at most ROWS_AT_MOST records, which are in ascending order.
    """
    source = as_bytes(data)
    _, at = lengths(source, begins)
    timestamp_delta_ms, at, too_long = _varints(source, pc.add(at, 1), _TIMESTAMP_BYTES)
    offset_delta, at = lengths(source, at)
    key_length, key_at = lengths(source, at)
    key_good, at = ends_within(key_at, key_length, ends)
    value_length, value_at = lengths(source, at)
    value_good, at = ends_within(value_at, value_length, ends)
    header_count, at = lengths(source, at)
    headers_good = pc.or_(
        pc.and_(pc.equal(header_count, 0), pc.equal(at, ends)),
        pc.and_(pc.greater(header_count, 0), pc.less(at, ends)),
    )
    good = pc.and_not(pc.and_(pc.and_(key_good, value_good), headers_good), too_long)
    places = Places(key_at, key_length, value_at, value_length, at, header_count)
    return Fields(good, timestamp_delta_ms, offset_delta, _tamed(good, places, ends), ends)


def _varints(source: pa.Array, at: pa.Array, bytes_at_most: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The signed varints at each of `at`, where they end, and whether they are too long."""
    byte = pc.take(source, at)
    at = pc.add(at, 1)
    more = pc.greater(byte, 127)
    if not pc.any(more).as_py():
        return pc.take(_SIGNED, byte), at, more
    value = pc.take(_LOW_BITS, byte)
    for shift in range(7, 7 * bytes_at_most, 7):
        byte = pc.take(source, at)
        bits = _shifted(pc.take(_LOW_BITS, byte), shift)
        value = pc.if_else(more, pc.bit_wise_or(value, bits), value)
        at = pc.add(at, pc.cast(more, pa.int64()))
        more = pc.and_(more, pc.greater(byte, 127))
        if not pc.any(more).as_py():
            break
    magnitude = pc.bit_wise_and(pc.shift_right(value, 1), _INT64_MAX)
    return pc.bit_wise_xor(magnitude, pc.negate(pc.bit_wise_and(value, 1))), at, more


def _shifted(bits: pa.Array, shift: int) -> pa.Array:
    """`bits`, shifted left; Arrow shifts an int64 by at most 62, and returns it unchanged for more."""
    if shift > _SHIFT_MOST:
        return _shifted(pc.shift_left(bits, _SHIFT_MOST), shift - _SHIFT_MOST)
    return pc.shift_left(bits, shift)


def lengths(source: pa.Array, at: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The length or count at each of `at`, and where it ends. -2 stands for one that is too long."""
    length, at, too_long = _varints(source, at, _LENGTH_BYTES)
    return pc.if_else(too_long, -2, length), at


def ends_within(at: pa.Array, length: pa.Array, ends: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Whether `length` bytes (or a null) at `at` end before `ends`, and where they end (or `ends`)."""
    stops = pc.add(at, pc.max_element_wise(length, 0))
    good = pc.and_(pc.greater_equal(length, -1), pc.less(stops, ends))
    return good, pc.if_else(good, stops, ends)


def _tamed(good: pa.Array, places: Places, ends: pa.Array) -> Places:
    """`places` with those of bad records made empty at their end: harmless, and still in ascending order."""
    if pc.all(good).as_py():
        return places
    tamed = [pc.if_else(good, column, ends if i % 2 == 0 else 0) for i, column in enumerate(places)]
    return Places(*tamed)
