"""Record batches of the log, as Arrow record batches with the columns of a plain table.

Batches are gathered into runs of a few megabytes, each of which is converted to columns at once.

The broker does not look inside batches, so any of them may be poisoned: the header promises records that the
payload does not hold. Such records are left out; the caller sees that there are fewer rows than offsets.

Timestamps that Spark can't represent would make a whole table unreadable (converting milliseconds to
microseconds overflows). So times after the year 9999 are shown as its end, and negative ones as -1, Kafka's
"no timestamp".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.publish.fields import PADDING_BYTES, ROW_NUMBERS, Fields, read_fields
from faircopy.publish.gather import gather
from faircopy.publish.headers import header_lists
from faircopy.publish.record_run import LoggedBatch, Origin, RecordRun
from faircopy.publish.schema import SCHEMA, TIMESTAMP_TYPE, Slice
from faircopy.wire.batch import COMPRESSION_MASK, HEADER_BYTES
from faircopy.wire.compression import Bytes, RecordsError, decompress
from faircopy.wire.records import DECOMPRESSED_BYTES_AT_MOST

NO_TIMESTAMP_MS = -1
LAST_TIMESTAMP_MS = 253_402_300_799_999  # the last millisecond of the year 9999


class Rows(NamedTuple):
    """Rows of a plain table, and how many of them belong to which partition, in their order."""

    batch: pa.RecordBatch
    slices: list[Slice]


def decode(batches: Iterable[LoggedBatch], limit_bytes: int = DECOMPRESSED_BYTES_AT_MOST) -> Iterator[Rows]:
    """The rows of `batches`, in order; rows that can't be decoded or are not wanted are left out.

    A batch that decompresses to more than `limit_bytes` can't be decoded. At most ROWS_AT_MOST rows and about
    RUN_BYTES are yielded at a time, unless a single record is larger.
    """
    run = RecordRun()
    for batch in batches:
        data, at, stop = _records_section(batch, limit_bytes)
        done = 0
        while at < stop and done < batch.header.records:
            taken, at = run.add(batch, data, at, stop, done)
            done += taken
            if run.is_full:
                yield from _rows(run)
                run = RecordRun()
    yield from _rows(run)


def _records_section(batch: LoggedBatch, limit_bytes: int) -> tuple[Bytes, int, int]:
    """The decompressed records: a buffer, and where in it they begin and end."""
    begin, stop = batch.at + HEADER_BYTES, batch.at + batch.header.size_bytes
    codec = batch.header.attributes & COMPRESSION_MASK
    if not codec:
        return batch.data, begin, stop
    try:
        data = decompress(codec, memoryview(batch.data)[begin:stop], limit_bytes)
    except RecordsError:
        return b"", 0, 0
    return data, 0, len(data)


def _rows(run: RecordRun) -> Iterator[Rows]:
    if run.ends:
        batch, sources = _columns(run)
        if batch.num_rows:
            yield Rows(batch, _slices(run, sources))


def _slices(run: RecordRun, sources: pa.Array) -> list[Slice]:
    counted = ((run.sources[one["values"]], one["counts"]) for one in pc.value_counts(sources).to_pylist())
    return [Slice(source.topic, source.partition, rows) for source, rows in counted]


def _columns(run: RecordRun) -> tuple[pa.RecordBatch, pa.Array]:
    """The rows of a run, and the number of the source of each."""
    count = len(run.ends)
    run.payload.extend(bytes(PADDING_BYTES))
    data = pa.py_buffer(run.payload)
    origins = _OriginColumns(run)
    ends = pc.add(pa.array(run.ends, pa.int64()), origins.integers("end_shift"))
    begins = pa.concat_arrays([pa.array([0], pa.int64()), ends.slice(0, count - 1)])
    fields = read_fields(data, begins, ends)
    headers, good = header_lists(data, fields)
    offset = pc.add(ROW_NUMBERS.slice(0, count), origins.integers("offset_shift"))
    sources = origins.integers("source")
    columns = [
        gather(data, fields.places.key_at, fields.places.key_length),
        gather(data, fields.places.value_at, fields.places.value_length),
        _of_sources(run, sources, "topic", pa.string()),
        _of_sources(run, sources, "partition", pa.int32()),
        offset,
        _timestamps(origins, fields),
        pc.cast(origins.integers("timestamp_type"), pa.int32()),
        headers,
        origins.of("txid", pa.string()),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    expected = pc.subtract(offset, origins.integers("base_offset"))
    good = pc.and_(good, pc.equal(fields.offset_delta, expected))
    good = pc.and_(good, pc.greater_equal(offset, _of_sources(run, sources, "first_offset", pa.int64())))
    return (rows, sources) if pc.all(good).as_py() else (rows.filter(good), sources.filter(good))


def _of_sources(run: RecordRun, sources: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    return pc.take(pa.array([getattr(source, name) for source in run.sources], kind), sources)


class _OriginColumns:
    """The columns that rows of a run get from their batches."""

    def __init__(self, run: RecordRun) -> None:
        self._origin = pa.Array.from_buffers(pa.int32(), len(run.origin), [None, pa.py_buffer(run.origin)])
        self._columns = dict(zip(Origin._fields, zip(*run.origins, strict=True), strict=True))

    def of(self, name: str, kind: pa.DataType) -> pa.Array:
        return pc.take(pa.array(self._columns[name], kind), self._origin)

    def integers(self, name: str) -> pa.Array:
        return self.of(name, pa.int64())


def _timestamps(origins: _OriginColumns, fields: Fields) -> pa.Array:
    base = origins.integers("timestamp_ms")
    stamped = pc.equal(origins.integers("timestamp_type"), 1)
    exact = pc.if_else(stamped, base, pc.add(base, fields.timestamp_delta_ms))
    shown = pc.min_element_wise(pc.max_element_wise(exact, NO_TIMESTAMP_MS), LAST_TIMESTAMP_MS)
    return shown.view(TIMESTAMP_TYPE)
