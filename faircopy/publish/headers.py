"""Headers of records, as one Arrow list array.

One round of kernels reads the first headers of all records, the next one the second headers of the records
that have more, and so on. A round costs as much as some hundred headers that are read in a loop, so when few
records are left, the rest is read one by one. The bytes of headers are in the order of their records, so
sorting by position restores the order.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.publish.fields import ROW_NUMBERS, Fields, as_bytes, ends_within, lengths
from faircopy.publish.gather import gather
from faircopy.publish.header_loop import LEAST_BYTES, PARTS, read_headers
from faircopy.publish.record_run import RUN_BYTES
from faircopy.publish.schema import HEADER_TYPE, HEADERS_TYPE

MANY_ROWS = 200
HEADERS_AT_MOST = RUN_BYTES // LEAST_BYTES
"""Of one record: as many as the records of a run can have together, so that memory is bounded."""


class _Headers(NamedTuple):
    """The places of headers, in arrays of int64 with one element for each. `row` is the record's row."""

    row: pa.Array
    key_at: pa.Array
    key_length: pa.Array
    value_at: pa.Array
    value_length: pa.Array


class _Rows(NamedTuple):
    """Records whose next header is at `at`; `left` is how many they still have."""

    row: pa.Array
    at: pa.Array
    ends: pa.Array
    left: pa.Array


def header_lists(data: pa.Buffer, fields: Fields) -> tuple[pa.Array, pa.Array]:
    """(the headers of each record, whether the record with its headers is good).

    A record without headers, or with bad ones, has null.
    """
    count = fields.places.header_count
    bearing = pc.and_(pc.greater(count, 0), pc.less_equal(count, HEADERS_AT_MOST))
    if not pc.any(bearing).as_py():
        return pa.nulls(len(count), HEADERS_TYPE), pc.and_(fields.good, pc.equal(count, 0))
    found, whole = _find(data, fields, bearing)
    sizes = pc.if_else(whole, count, 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
    pairs = pa.StructArray.from_arrays([_keys(data, found), _values(data, found)], fields=list(HEADER_TYPE))
    lists = pa.ListArray.from_arrays(
        pc.cast(offsets, pa.int32()), pairs, type=HEADERS_TYPE, mask=pc.invert(whole)
    )
    return lists, pc.and_(fields.good, pc.or_(whole, pc.equal(count, 0)))


def _find(data: pa.Buffer, fields: Fields, bearing: pa.Array) -> tuple[_Headers, pa.Array]:
    """The headers of records that have some (`bearing`), in order; and which records are then complete."""
    source = as_bytes(data)
    row = pc.cast(pc.indices_nonzero(bearing), pa.int64())
    columns = (fields.places.headers_at, fields.ends, fields.places.header_count)
    rows = _Rows(row, *(pc.take(column, row) for column in columns))
    rounds: list[_Headers] = []
    whole: list[pa.Array] = []
    while len(rows.row) >= MANY_ROWS:
        headers, rows = _next_headers(source, rows)
        rounds.append(headers)
        whole.append(pc.filter(rows.row, pc.and_(pc.equal(rows.left, 0), pc.equal(rows.at, rows.ends))))
        rows = _filtered(rows, pc.greater(rows.left, 0))
    if len(rows.row):
        headers, ended = _one_by_one(data, rows)
        rounds.append(headers)
        whole.append(ended)
    numbers = ROW_NUMBERS.slice(0, len(fields.ends))
    is_whole = pc.is_in(numbers, value_set=pa.concat_arrays(whole))
    return _in_order(rounds, is_whole), is_whole


def _next_headers(source: pa.Array, rows: _Rows) -> tuple[_Headers, _Rows]:
    """One header of each row, and the rows after it; rows with a bad header are left out of both."""
    key_length, key_at = lengths(source, rows.at)
    key_good, at = ends_within(key_at, key_length, rows.ends)
    value_length, value_at = lengths(source, at)
    value_good, at = ends_within(value_at, value_length, pc.add(rows.ends, 1))
    good = pc.and_(pc.and_(key_good, value_good), pc.greater_equal(key_length, 0))
    headers = _Headers(rows.row, key_at, key_length, value_at, value_length)
    rows = _Rows(rows.row, at, rows.ends, pc.subtract(rows.left, 1))
    return _filtered(headers, good), _filtered(rows, good)


def _one_by_one(data: pa.Buffer, rows: _Rows) -> tuple[_Headers, pa.Array]:
    """All headers of each row, and the rows of which these are sound; the others have none."""
    found, row_of, ended = array("q"), array("q"), array("q")
    source = memoryview(data).cast("B")  # Arrow's own view has signed bytes
    for row, at, end, left in zip(*(column.to_pylist() for column in rows), strict=True):
        if read_headers(source, at, end, left, found):
            row_of.extend(array("q", (row,)) * left)
            ended.append(row)
    return _Headers(_integers(row_of), *(_integers(found[part::PARTS]) for part in range(PARTS))), _integers(
        ended
    )


def _integers(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _in_order(rounds: list[_Headers], whole: pa.Array) -> _Headers:
    """The headers of all rounds that belong to `whole` records, record by record."""
    columns = _Headers(*(pa.concat_arrays(parts) for parts in zip(*rounds, strict=True)))
    headers = _filtered(columns, pc.take(whole, columns.row))
    if len(rounds) == 1:
        return headers
    order = pc.sort_indices(headers.key_at)
    return _Headers(*(pc.take(column, order) for column in headers))


_Columns = TypeVar("_Columns", _Headers, _Rows)


def _filtered(columns: _Columns, keep: pa.Array) -> _Columns:
    if pc.all(keep).as_py():
        return columns
    return type(columns)(*(pc.filter(column, keep) for column in columns))


def _keys(data: pa.Buffer, headers: _Headers) -> pa.Array:
    keys = gather(data, headers.key_at, headers.key_length)
    try:
        return pc.cast(keys, pa.string())
    except pa.ArrowInvalid:  # Some are not UTF-8. Java's clients read such keys in the same way.
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


def _values(data: pa.Buffer, headers: _Headers) -> pa.Array:
    return gather(data, headers.value_at, headers.value_length)
