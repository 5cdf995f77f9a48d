"""The checksum of a data file. It is part of the file's name, so the table's log, which lists names, covers
the bytes.

It is the CRC32C of the file's modification time in that log (milliseconds, in decimal digits) followed by the
file's content. It covers the parts that Parquet's own page checksums leave out, and still protects rows that
the broker's log has long dropped.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from crc32c import crc32c

from faircopy.publish import names
from faircopy.publish.files import Files, NewFile
from faircopy.publish.spark_log import DataFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PIECE_BYTES = 1 << 20


class SummedFile(io.RawIOBase):
    """A file that is being written, and the checksum of its content so far."""

    def __init__(self, file: NewFile, modified_ms: int) -> None:
        self._file = file
        self.checksum = first_checksum(modified_ms)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        self.checksum = crc32c(memoryview(data).cast("B"), self.checksum)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()


def first_checksum(modified_ms: int) -> int:
    """The checksum of an empty file."""
    return int(crc32c(str(modified_ms).encode()))


def is_sound(files: Files, directory: Path, listed: DataFile) -> bool:
    """Whether a file's bytes, and its time in the log, match the checksum in its name. Raises OSError."""
    checksum = first_checksum(listed.modified_ms)
    with files.open_to_read(directory / listed.name) as file:
        while piece := file.read(PIECE_BYTES):
            checksum = crc32c(piece, checksum)
    return checksum == names.checksum_of(listed.name)
