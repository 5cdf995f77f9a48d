"""Arrow columns as Kafka record batches, without an object for each row.

A record is the concatenation of small numbers, a key, small numbers, a value and headers. The numbers of all
rows are made by numpy, and Arrow concatenates them with the columns. Pure.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from crc32c import crc32c

from faircopy.client.outgoing import ProducerIdentity
from faircopy.spark.varints import Integers, constant, joined, varints
from faircopy.wire.batch import CRC_START, HEADER, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, TRANSACTIONAL
from faircopy.wire.records import varint

BATCH_BYTES = 512 << 10
ROWS_AT_MOST = 50_000
ROW_OVERHEAD_BYTES = 20
EMPTY = b""
NO_HEADERS = varint(0)
ABSENT = -1
_CRC_AT = 17

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Kafka's names of compressions, with their numbers in a batch's attributes."""


class Columns(NamedTuple):
    """The columns of records: binary arrays of one length, `headers` a list of (key, value), or None."""

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
    those of the rows, equal ones in a row; `sizes` are the bytes of their keys and values.
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


class Records(NamedTuple):
    """Encoded records, one after the other; record i ends at `ends[i + 1]`."""

    data: memoryview
    ends: npt.NDArray[np.int32]

    def section(self, start: int, end: int) -> memoryview:
        """The records section of a batch of some of them."""
        return self.data[int(self.ends[start]) : int(self.ends[end])]


def records(columns: Columns, deltas: Integers, key_lengths: Integers, value_lengths: Integers) -> Records:
    """The records of some rows, all of one time. `deltas` are their numbers in their batches."""
    rows = len(deltas)
    tail = header_bytes(columns.headers, rows)
    offsets, key_sizes, value_sizes = map(varints, (deltas, key_lengths, value_lengths))
    one = constant(0, rows)  # attributes, and the difference of the timestamp
    body = 2 + offsets.sizes + key_sizes.sizes + value_sizes.sizes + lengths(tail)
    body += key_lengths.clip(0) + value_lengths.clip(0)
    prefix = joined(varints(body), one, one, offsets, key_sizes)
    key, value = (pc.fill_null(each, EMPTY) if each.null_count else each for each in columns[:2])
    found = pc.binary_join_element_wise(prefix, key, joined(value_sizes), value, tail, EMPTY)
    ends = np.frombuffer(found.buffers()[1], np.int32)[found.offset : found.offset + rows + 1]
    return Records(memoryview(found.buffers()[2]), ends)


def header_bytes(headers: Any | None, rows: int) -> Any:
    """The headers of each row, encoded. Most rows have none."""
    if headers is None or headers.null_count == rows:
        return pa.repeat(pa.scalar(NO_HEADERS, pa.binary()), rows)
    return pa.array([encoded_headers(each.as_py()) for each in headers], pa.binary())


def encoded_headers(headers: list[dict[str, Any]] | None) -> bytes:
    """The headers of one row."""
    encoded = bytearray(varint(len(headers or ())))
    for header in headers or ():
        key, value = header["key"].encode(), header["value"]
        encoded += varint(len(key)) + key + varint(ABSENT if value is None else len(value)) + (value or EMPTY)
    return bytes(encoded)


def compressed(codec: int, section: Any) -> Any:
    """The records section under a compression."""
    if codec == CODECS["gzip"]:
        return memoryview(cramjam.gzip.compress(section))
    if codec == CODECS["snappy"]:
        return memoryview(cramjam.snappy.compress_raw(section))
    if codec == CODECS["lz4"]:
        return memoryview(cramjam.lz4.compress(section))
    return zstandard.ZstdCompressor(level=1).compress(section) if codec == CODECS["zstd"] else section


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
