"""Reads plain tables as a foreign program does: only the files that the table's log lists."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as parquet

from faircopy.publish.live_files import NoTableError, live_files
from tests.checker.history import Read
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.publisher import PublishFiles

COLUMNS = ["topic", "partition", "offset", "value"]


def rows_of(disk: LyingDisk, directory: Path) -> list[Read]:
    """All rows of a table; none if there is no table yet."""
    files = PublishFiles(disk)
    try:
        paths = live_files(files, directory)
    except NoTableError:
        return []
    found = []
    for path in paths:
        rows = parquet.read_table(io.BytesIO(files.read(path)), columns=COLUMNS).to_pydict()
        found += [
            Read(f"{topic}-{partition}", offset, int(value))
            for topic, partition, offset, value in zip(*(rows[column] for column in COLUMNS), strict=True)
        ]
    return found
