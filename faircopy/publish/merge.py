"""Merging data files into one, sorted by (topic, partition, offset), in bounded memory.

Each input is sorted, and its footer says where the rows of each partition are. So the output is made in
*bands*: neighbouring partitions whose rows together fit the budget. For each band, every input is read at
once, and the rows of each partition are combined. A partition that is larger than the budget is a band of its
own. Its rows need no sorting, since the inputs follow each other in time: they are copied a row group at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.errors import FaircopyError
from faircopy.publish.data_file import DataFileWriter
from faircopy.publish.files import Files
from faircopy.publish.offsets import Held
from faircopy.publish.schema import Footer, Selection, Slice, parse_footer
from faircopy.publish.table_columns import with_columns

BAND_BYTES = 16 * 1024 * 1024
BATCH_ROWS = 4096

Key = tuple[str, int]  # topic and partition


class MergeError(FaircopyError):
    """A data file does not hold what its footer says; nothing was merged."""


class _Input(NamedTuple):
    """A file to merge: where each partition's rows are in it, and how much memory a row takes."""

    path: Path
    ranges: dict[Key, range]
    row_bytes: float
    footer: Footer


def read_footer(files: Files, path: Path) -> Footer:
    """The footer of a data file. Raises FooterError, OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        return parse_footer(parquet.metadata.metadata, str(path))


def merge(files: Files, paths: Sequence[Path], writer: DataFileWriter) -> Held:
    """Write the rows of the files, oldest first, to `writer`. Returns what the table holds after the last.

    Raises MergeError, FooterError, OSError or pyarrow's errors.
    """
    inputs = [_open(files, path) for path in paths]
    writer.selection = max((each.footer.selection for each in inputs), key=list(Selection).index)
    for band in bands(_sizes(inputs), BAND_BYTES):
        _write_band(files, inputs, band, writer)
    return inputs[-1].footer.held


def bands(sizes: Mapping[Key, float], budget_bytes: int) -> Iterator[list[Key]]:
    """The partitions in order, in groups that fit the budget and have at least one partition."""
    band: list[Key] = []
    total = 0.0
    for key in sorted(sizes):
        if band and total + sizes[key] > budget_bytes:
            yield band
            band, total = [], 0.0
        band.append(key)
        total += sizes[key]
    if band:
        yield band


def _open(files: Files, path: Path) -> _Input:
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        metadata = parquet.metadata
        footer = parse_footer(metadata.metadata, str(path))
        size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    ranges: dict[Key, range] = {}
    row = 0
    for topic, partition, rows in footer.slices:
        ranges[topic, partition] = range(row, row + rows)
        row += rows
    if row != metadata.num_rows:
        raise MergeError(f"merging {path}: it has {metadata.num_rows} rows, and its footer says {row}")
    return _Input(path, ranges, size / max(1, row), footer)


def _sizes(inputs: Sequence[_Input]) -> dict[Key, float]:
    sizes: dict[Key, float] = {}
    for merged in inputs:
        for key, rows in merged.ranges.items():
            sizes[key] = sizes.get(key, 0.0) + len(rows) * merged.row_bytes
    return sizes


def _write_band(files: Files, inputs: Sequence[_Input], band: Sequence[Key], writer: DataFileWriter) -> None:
    if len(band) == 1:
        for merged in inputs:
            for rows in _rows(files, merged, merged.ranges.get(band[0], range(0)), writer.schema):
                writer.add(rows, [Slice(*band[0], rows.num_rows)])
        return
    loaded = [(merged, *_load(files, merged, band, writer.schema)) for merged in inputs]
    for key in band:
        for merged, first, table in loaded:
            rows = merged.ranges.get(key, range(first, first))
            for batch in table.slice(rows.start - first, len(rows)).to_batches():
                writer.add(batch, [Slice(*key, batch.num_rows)])


def _load(files: Files, merged: _Input, band: Sequence[Key], schema: pa.Schema) -> tuple[int, pa.Table]:
    """The rows of an input that belong to a band, which are contiguous, and the number of the first one."""
    ranges = [merged.ranges[key] for key in band if key in merged.ranges]
    wanted = range(ranges[0].start, ranges[-1].stop) if ranges else range(0)
    return wanted.start, pa.Table.from_batches(_rows(files, merged, wanted, schema), schema)


def _rows(files: Files, merged: _Input, wanted: range, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows with these numbers, some thousands at a time, with all columns of the table."""
    if not wanted:
        return
    with files.open_to_read(merged.path) as file, pq.ParquetFile(file) as parquet:
        for first, number in _row_groups(parquet, wanted):
            row = first
            for batch in parquet.iter_batches(BATCH_ROWS, [number], use_threads=False):
                start, stop = max(wanted.start - row, 0), min(wanted.stop - row, batch.num_rows)
                if start < stop:
                    yield with_columns(batch.slice(start, stop - start), schema)
                row += batch.num_rows


def _row_groups(parquet: pq.ParquetFile, wanted: range) -> Iterator[tuple[int, int]]:
    """(first row, number) of each row group that has wanted rows."""
    row = 0
    for number in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(number).num_rows
        if max(wanted.start, row) < min(wanted.stop, row + rows):
            yield row, number
        row += rows
