"""Taking rows out of a data file, in its place: the name, the size and the checksum in its name stay.

Nothing else could be right for all readers. A stream knows a file by its path, so under another name it
would read the remaining rows again; a reader that lists the directory would find them in both files, or for a
moment in none. But when one file takes the place of another of the same name, each reader that opens it finds
all the former rows, or all the remaining ones. Spark's log lists it by its name, size and time, which are
still true.

The new content is shorter, and begins with zeros in place of what was taken out:

    PAR1 | zeros | four bytes that make the checksum the same | pages | some zeros | footer | its size | PAR1

Parquet's footers have the places of pages, so a gap does no harm. But a query that has read the former footer
and reads pages of the new content must fail: it finds zeros, which are no page header, where the first page
was. Some more zeros before the footer make up the rest of the size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from crc32c import crc32c

from faircopy.errors import FaircopyError, invariant
from faircopy.publish import names
from faircopy.publish.checksum import PIECE_BYTES, first_checksum
from faircopy.publish.data_file import DataFileWriter
from faircopy.publish.file_content import Content
from faircopy.publish.files import Files
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.parquet_footer import moved
from faircopy.publish.same_checksum import BYTES, four_bytes
from faircopy.publish.schema import Footer, Slice, parse_footer
from faircopy.publish.spark_log import DataFile
from faircopy.publish.table_columns import schema_in, with_columns

MAGIC = b"PAR1"
LENGTH = struct.Struct("<I")
BATCH_ROWS = 4096
SMALLER: tuple[dict[str, Any], ...] = (
    {},
    {"write_page_checksum": False, "compression_level": 9},
    {"write_page_checksum": False, "compression_level": 19, "write_statistics": False},
)
"""Ways to write the remaining rows, each of which takes less space than the one before."""


class NoRoomError(FaircopyError):
    """The remaining rows do not fit into the file's size; the file is as it was."""


class Rewritten(NamedTuple):
    """A file that is to replace another one, and what it holds."""

    name: str
    content: Content


def has_rows_below(files: Files, path: Path, firsts: NextOffsets) -> bool:
    """Whether a data file has rows of some partition below the first offset that is given for it.

    Raises FooterError, OSError, or pyarrow's errors for damage.
    """
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        footer = parse_footer(parquet.metadata.metadata, str(path))
        if not any(_first(firsts, each) for each in footer.slices):
            return False
        offsets = parquet.read(columns=["offset"], use_threads=False)["offset"]
    row = 0
    for each in footer.slices:
        if each.rows and offsets[row].as_py() < _first(firsts, each):
            return True
        row += each.rows
    return False


def write_without(files: Files, directory: Path, file: DataFile, size: int, firsts: NextOffsets) -> Rewritten:
    """Durably write what shall replace a data file of `size` bytes, under a temporary name: the same without
    rows below the first offsets of their partitions.

    Raises NoRoomError, FsyncError, OSError, or pyarrow's errors for damage.
    """
    return _Rewriting(files, directory, file, size, firsts).write()


class _Pages(NamedTuple):
    """The remaining rows as a file of their own, at `path`: its pages, without PAR1, and its footer."""

    path: Path
    size: int
    footer: bytes
    content: Content


class _Rewriting:
    """The rewriting of one file."""

    def __init__(self, files: Files, directory: Path, file: DataFile, size: int, firsts: NextOffsets) -> None:
        self._files = files
        self._directory = directory
        self._file = file
        self._path = directory / file.name
        self._size = size
        self._firsts = firsts
        self._schema = schema_in(files, self._path)
        with files.open_to_read(self._path) as opened, pq.ParquetFile(opened) as parquet:
            self._footer = parse_footer(parquet.metadata.metadata, str(self._path))

    def write(self) -> Rewritten:
        """Write the file."""
        pages = self._fitting()
        room = self._room(pages)
        zeros = max(room - self._growth(pages, room + BYTES), 0)
        footer = moved(pages.footer, zeros + BYTES)
        rest = bytes(room - zeros - (len(footer) - len(pages.footer)))
        end = rest + footer + LENGTH.pack(len(footer)) + MAGIC
        wanted = names.checksum_of(self._file.name)
        assert wanted is not None
        four = four_bytes(self._checksum(zeros, pages, end), wanted, pages.size + len(end))
        with self._files.create(self._directory / names.temporary(self._file.name)) as new:
            for piece in self._pieces(zeros, four, pages, end):
                new.write(piece)
            invariant(new.size == self._size, f"{self._file.name} has another size")
            new.sync()
        self._files.delete(pages.path)
        return Rewritten(self._file.name, pages.content)

    def _room(self, pages: _Pages) -> int:
        """How many bytes are left over."""
        used = len(MAGIC) + BYTES + pages.size + len(pages.footer) + LENGTH.size + len(MAGIC)
        return self._size - used

    def _fitting(self) -> _Pages:
        """The remaining rows, small enough."""
        for options in SMALLER:
            pages = self._encoded(options)
            if self._room(pages) >= self._growth(pages, BYTES):
                return pages
            self._files.delete(pages.path)
        raise NoRoomError(f"rewriting {self._path}: the remaining rows take more than {self._size} bytes")

    def _growth(self, pages: _Pages, by_bytes: int) -> int:
        """How much the footer grows if the pages move: places in it become larger numbers."""
        return len(moved(pages.footer, max(by_bytes, 0))) - len(pages.footer)

    def _encoded(self, options: Mapping[str, Any]) -> _Pages:
        path = self._directory / names.temporary(f"{self._file.name}.pages")
        with self._files.create(path) as file:
            writer = DataFileWriter(file, self._schema, options)
            try:
                writer.selection = self._footer.selection
                for batch, one in self._remaining():
                    writer.add(batch, [one])
                writer.finish(self._footer.held)
            except BaseException:
                writer.abandon()
                raise
            size = file.size
        tail = len(MAGIC) + LENGTH.size
        (footer_bytes,) = LENGTH.unpack_from(self._files.read(path, size - tail))
        footer = self._files.read(path, size - tail - footer_bytes, footer_bytes)
        return _Pages(path, size - tail - footer_bytes - len(MAGIC), footer, writer.content())

    def _checksum(self, zeros: int, pages: _Pages, end: bytes) -> int:
        checksum = first_checksum(self._file.modified_ms)
        for piece in self._pieces(zeros, bytes(BYTES), pages, end):
            checksum = crc32c(piece, checksum)
        return checksum

    def _pieces(self, zeros: int, four: bytes, pages: _Pages, end: bytes) -> Iterator[bytes]:
        """The new content."""
        yield MAGIC + bytes(zeros) + four
        for at in range(0, pages.size, PIECE_BYTES):
            yield self._files.read(pages.path, len(MAGIC) + at, min(PIECE_BYTES, pages.size - at))
        yield end

    def _remaining(self) -> Iterator[tuple[pa.RecordBatch, Slice]]:
        for batch, one in sliced(self._files, self._path, self._footer):
            first = _first(self._firsts, one)
            kept = batch.filter(pc.greater_equal(batch.column("offset"), first)) if first else batch
            if len(kept):
                yield with_columns(kept, self._schema), one._replace(rows=len(kept))


def sliced(files: Files, path: Path, footer: Footer) -> Iterator[tuple[pa.RecordBatch, Slice]]:
    """The rows of a data file, each batch of one partition."""
    slices: Iterable[Slice] = footer.slices
    left = iter(slices)
    current = Slice("", 0, 0)
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(BATCH_ROWS, use_threads=False):
            row = 0
            while row < len(batch):
                while not current.rows:
                    current = next(left)
                count = min(current.rows, len(batch) - row)
                yield batch.slice(row, count), current._replace(rows=count)
                row, current = row + count, current._replace(rows=current.rows - count)


def _first(firsts: NextOffsets, one: Slice) -> int:
    return firsts.get(one.topic, {}).get(one.partition, 0)
