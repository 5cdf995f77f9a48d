"""One Parquet file, written as rows arrive: memory holds one row group, however large the file gets."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.publish import names
from faircopy.publish.checksum import SummedFile
from faircopy.publish.file_content import Content, content_of
from faircopy.publish.files import Files, rename_durably
from faircopy.publish.offsets import Held
from faircopy.publish.schema import Footer, Selection, Slice, footer_metadata, writer_options
from faircopy.publish.spark_log import DataFile

ROW_GROUP_BYTES = 8 * 1024 * 1024


class DataFileWriter:
    """Writes rows to `file`, sorted by (topic, partition, offset). Call `finish` or `abandon` in the end.

    `selection` may be set until then.
    """

    def __init__(self, file: io.RawIOBase, schema: pa.Schema) -> None:
        self.schema = schema
        self.selection = Selection.ALL
        self._metadata: list[pq.FileMetaData] = []
        options = writer_options(schema)
        self._writer = pq.ParquetWriter(file, schema, metadata_collector=self._metadata, **options)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._slices: list[Slice] = []
        self._footer: Footer | None = None
        self.rows = 0

    def add(self, rows: pa.RecordBatch, slices: Iterable[Slice]) -> None:
        """Add the rows of `slices`; the rows of a partition must be added one after the other."""
        for one in slices:
            self._count(one)
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write_row_group()

    def finish(self, held: Held) -> None:
        """Write the remaining rows, and the footer that says what the table holds. This does not sync."""
        if self._waiting or not self.rows:
            self._write_row_group()  # older readers fail on a file without any row group
        self._footer = Footer(held, self._slices, self.selection)
        self._writer.add_key_value_metadata(footer_metadata(self._footer))
        self._writer.close()

    def content(self) -> Content:
        """What a finished file holds."""
        assert self._footer
        return content_of(self._metadata[0], self._footer)

    def abandon(self) -> None:
        """Close a file that won't be finished; its content is worthless."""
        with contextlib.suppress(Exception):
            self._writer.close()

    def _count(self, added: Slice) -> None:
        self.rows += added.rows
        last = self._slices[-1] if self._slices else None
        if last and last[:2] == added[:2]:
            self._slices[-1] = last._replace(rows=last.rows + added.rows)
        else:
            self._slices.append(added)

    def _write_row_group(self) -> None:
        table = pa.Table.from_batches(self._waiting, self.schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting.clear()
        self._waiting_bytes = 0


Fill = Callable[[DataFileWriter], Held]


class Written(NamedTuple):
    """A new data file."""

    file: DataFile
    content: Content


def write_data_file(files: Files, path: Path, modified_ms: int, schema: pa.Schema, fill: Fill) -> Written:
    """Durably write a data file that no entry lists yet, with its checksum in its name.

    `schema` has its columns; `fill` adds the rows, and returns what the table holds after them. If `fill`
    fails, there is no file.
    """
    unfinished = path.with_name(names.temporary(path.name))
    with files.create(unfinished) as file:
        summed = SummedFile(file, modified_ms)
        writer = DataFileWriter(summed, schema)
        try:
            writer.finish(fill(writer))
        except BaseException:
            writer.abandon()
            raise
        file.sync()
        size = file.size
    finished = path.with_name(names.with_checksum(path.name, summed.checksum))
    rename_durably(files, unfinished, finished)
    return Written(DataFile(finished.name, size, modified_ms), writer.content())
