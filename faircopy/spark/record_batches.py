"""Arrow columns as Kafka record batches, without an object for each row.

A record is the concatenation of small numbers, a key, small numbers, a value and headers. The numbers of all
rows are made by numpy, and Arrow concatenates them with the columns. Pure.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from faircopy.client.outgoing import ProducerIdentity
from faircopy.spark.interleaving import RowBytes, RowPart, interleaved, varint_part
from faircopy.spark.varints import Integers, constant, joined, sizes_of, varints
from faircopy.wire.batch import CRC_START, HEADER, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, TRANSACTIONAL
from faircopy.wire.records import varint

BATCH_BYTES = 512 << 10
ROWS_AT_MOST = 50_000
ROW_OVERHEAD_BYTES = 20
EMPTY = b""
NO_HEADERS = varint(0)
ABSENT = -1
BEFORE_DELTA_BYTES = 2
DELTAS = joined(constant(0, ROWS_AT_MOST), constant(0, ROWS_AT_MOST), varints(np.arange(ROWS_AT_MOST)))
"""For each number of a record in its batch: its attributes, the difference of its timestamp, the number."""
_CRC_AT = 17


class Columns(NamedTuple):
    """The columns of records: binary arrays of one length. `headers` are encoded; None if no row has any."""

    key: Any
    value: Any
    headers: Any | None

    def take(self, indices: Any) -> Columns:
        """These rows."""
        return Columns(*(each.take(indices) if each is not None else None for each in self))


def lengths(column: Any) -> Integers:
    """The number of bytes of each row; ABSENT where it is null."""
    found = pc.fill_null(pc.binary_length(column), ABSENT)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def divisions(partitions: Integers, sizes: Integers) -> list[tuple[int, int]]:
    """Where to divide rows into batches: the first row of each, and the one after its last. `partitions` are
    those of the rows, equal ones in a row; `sizes` are the bytes of their keys, values and headers.
    """
    starts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    ends = np.cumsum(sizes + ROW_OVERHEAD_BYTES)
    found = []
    for start, stop in itertools.pairwise(starts):
        while start < stop:
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
            end = min(max(end, start + 1), start + ROWS_AT_MOST, stop)
            found.append((start, end))
            start = end
    return found


def records(
    columns: Columns,
    order: Integers,
    deltas: Integers,
    key_lengths: Integers,
    value_lengths: Integers,
    header_lengths: Integers,
) -> RowBytes:
    """The records of some rows in an order, all of one time. `deltas` are their numbers in their batches;
    these and the lengths are in order, the columns are not.
    """
    body = BEFORE_DELTA_BYTES + sizes_of(deltas) + sizes_of(key_lengths) + sizes_of(value_lengths)
    body += key_lengths.clip(0) + value_lengths.clip(0) + header_lengths
    return interleaved(
        [
            varint_part(body),
            RowPart(DELTAS.slice(0, int(deltas.max(initial=0)) + 1), deltas),
            varint_part(key_lengths),
            RowPart(columns.key, order),
            varint_part(value_lengths),
            RowPart(columns.value, order),
            header_part(columns.headers, order),
        ]
    )


def header_lengths(headers: Any | None, rows: int) -> Integers:
    """The number of bytes of each row's headers."""
    return lengths(headers) if headers is not None else np.full(rows, len(NO_HEADERS), np.int64)


def header_part(headers: Any | None, order: Integers) -> RowPart:
    """The headers of each row."""
    if headers is None:
        return RowPart(pa.array([NO_HEADERS], pa.binary()), np.zeros(len(order), np.int64))
    return RowPart(headers, order)


def headers_encoded(column: Any | None) -> Any | None:
    """A column of lists of (key, value), encoded; None if no row has any, as most have none."""
    if column is None or column.null_count == len(column):
        return None
    return pa.array([encoded_headers(each.as_py()) for each in column], pa.binary())


def encoded_headers(headers: list[dict[str, Any]] | None) -> bytes:
    """The headers of one row."""
    encoded = bytearray(varint(len(headers or ())))
    for header in headers or ():
        key, value = header["key"].encode(), header["value"]
        encoded += varint(len(key)) + key + varint(ABSENT if value is None else len(value)) + (value or EMPTY)
    return bytes(encoded)


def batch(
    producer: ProducerIdentity, sequence: int, section: Any, rows: int, codec: int, time_ms: int
) -> bytearray:
    """A transactional batch around a records section."""
    header = HEADER.pack(
        0, HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(section), 0, 2, 0, TRANSACTIONAL | codec, rows - 1,
        time_ms, time_ms, producer.producer_id, producer.epoch, sequence, rows,
    )  # fmt: skip
    made = bytearray(header)
    made += section
    made[_CRC_AT:CRC_START] = crc32c(memoryview(made)[CRC_START:]).to_bytes(4, "big")
    return made
