"""The statistics of a data file, as a Delta log has them: with them, readers skip files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from faircopy.publish.files import Files
from faircopy.publish.schema import MEASURED

Statistics = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def statistics_of(metadata: pq.FileMetaData) -> Statistics:
    """The number of rows, and the smallest and largest values of the columns that have them."""
    found = {name: bounds for name in MEASURED if (bounds := _bounds(metadata, name))}
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: least for name, (least, _) in found.items()},
        "maxValues": {name: most for name, (_, most) in found.items()},
        "nullCount": dict.fromkeys(found, 0),
    }


def statistics_in(files: Files, path: Path) -> Statistics:
    """The statistics of a file on disk. Raises OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        return statistics_of(parquet.metadata)


def _bounds(metadata: pq.FileMetaData, name: str) -> tuple[Any, Any] | None:
    """The smallest and the largest value of a column; None if there is no row, or a row group without."""
    chunks = list(_chunks(metadata, metadata.schema.names.index(name)))
    if not chunks or not all(chunk and chunk.has_min_max for chunk in chunks):
        return None
    shown = _SHOWN.get(name, lambda value: value)
    return shown(min(chunk.min_raw for chunk in chunks)), shown(max(chunk.max_raw for chunk in chunks))


def _chunks(metadata: pq.FileMetaData, column: int) -> Iterator[Any]:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return (group.column(column).statistics for group in groups if group.num_rows)


def _time(timestamp_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")


_SHOWN: dict[str, Callable[[Any], Any]] = {
    "topic": lambda name: name.decode(),
    "timestamp": lambda timestamp_ms: _time(timestamp_ms).replace("+00:00", "Z"),
}
