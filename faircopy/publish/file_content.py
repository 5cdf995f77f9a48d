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
        "minValues": {name: least for name, (least, _) in found.items()},
        "maxValues": {name: most for name, (_, most) in found.items()},
        "nullCount": dict.fromkeys(found, 0),
    }
    ends: NextOffsets = {}
    for topic, partition, _ in footer.slices:
        ends.setdefault(topic, {})[partition] = footer.held.next_offsets[topic][partition]
    return Content(statistics, ends)


def content_in(files: Files, path: Path) -> Content:
    """The content of a file on disk. Raises FooterError, OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        return content_of(parquet.metadata, parse_footer(parquet.metadata.metadata, str(path)))


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
