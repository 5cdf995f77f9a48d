"""What a data file holds, as a Delta log says it: with that, readers skip files, and the table drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from faircopy.publish.files import Files
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.schema import MEASURED, Footer, parse_footer
from faircopy.settings.columns import DAY_COLUMN

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Content(NamedTuple):
    """A file's statistics in Delta's form, and up to which offset it goes in each partition that it has rows
    of.
    """

    statistics: dict[str, Any]
    ends: NextOffsets

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.statistics["numRecords"])


def content_of(metadata: pq.FileMetaData, footer: Footer) -> Content:
    """The content of a file with this metadata, of which `footer` is our part."""
    found = {name: bounds for name in MEASURED if (bounds := _bounds(metadata, name))}
    statistics = {
        "numRecords": metadata.num_rows,
        "minValues": {name: bounds.least for name, bounds in found.items()},
        "maxValues": {name: bounds.most for name, bounds in found.items()},
        "nullCount": {name: bounds.nulls for name, bounds in found.items()},
    }
    ends: NextOffsets = {}
    for topic, partition, _ in footer.slices:
        ends.setdefault(topic, {})[partition] = footer.held.next_offsets[topic][partition]
    return Content(statistics, ends)


def content_in(files: Files, path: Path) -> Content:
    """The content of a file on disk. Raises FooterError, OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        return content_of(parquet.metadata, parse_footer(parquet.metadata.metadata, str(path)))


class Bounds(NamedTuple):
    """The smallest and the largest value of a column, and its number of nulls."""

    least: Any
    most: Any
    nulls: int


def _bounds(metadata: pq.FileMetaData, name: str) -> Bounds | None:
    """The bounds of a column; None if there is no row, or a row group without."""
    column = next((n for n in range(metadata.num_columns) if metadata.schema.column(n).path == name), None)
    chunks = list(_chunks(metadata, column)) if column is not None else []
    if not chunks or not all(chunk and chunk.has_min_max for chunk in chunks):
        return None
    shown = _SHOWN.get(name, lambda value: value)
    least, most = min(chunk.min_raw for chunk in chunks), max(chunk.max_raw for chunk in chunks)
    return Bounds(shown(least), shown(most), sum(chunk.null_count for chunk in chunks))


def _chunks(metadata: pq.FileMetaData, column: int) -> Iterator[Any]:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return (group.column(column).statistics for group in groups if group.num_rows)


def _time(timestamp_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")


_SHOWN: dict[str, Callable[[Any], Any]] = {
    "topic": lambda name: name.decode(),
    "timestamp": lambda timestamp_ms: _time(timestamp_ms).replace("+00:00", "Z"),
    DAY_COLUMN: lambda days: (_EPOCH + timedelta(days)).date().isoformat(),
}
