"""The files of a data log as they are on disk, batch by batch, read-only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.datalog.segment import SUFFIX
from faircopy.errors import FaircopyError
from faircopy.storage.epoch_history import NOTHING_KNOWN, Epochs
from faircopy.storage.file import File
from faircopy.storage.paths import list_files
from faircopy.verify.findings import Advance
from faircopy.wire.batch import (
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    PLACE,
    BatchError,
    BatchHeader,
    check_logged,
)

PIECE_BYTES = 1 << 20


class DamagedLogFile(FaircopyError):
    """A log file has a damaged or incomplete batch; the first one begins at `byte`."""

    def __init__(self, path: Path, byte: int, what: str) -> None:
        super().__init__(f"{path} at byte {byte:,}: {what}")
        self.path = path
        self.byte = byte
        self.what = what


class ShownBatch(NamedTuple):
    """One batch and its place; `data` is a view of a larger buffer."""

    path: Path
    byte: int
    header: BatchHeader
    data: memoryview

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.byte + len(self.data)

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.header.last_offset + 1


def log_files(directory: Path) -> list[Path]:
    """The segment files of a log, in order."""
    return list_files(directory, SUFFIX)


def base_offset_of(path: Path) -> int | None:
    """The first offset in a segment file, taken from its name; None if it is not such a name."""
    return int(path.stem) if path.stem.isascii() and path.stem.isdigit() else None


class LogFile:
    """One segment file, read from front to back."""

    def __init__(self, path: Path, advance: Advance = lambda _bytes: None) -> None:
        self.path = path
        self._file = File(path, read_only=True)
        self._advance = advance
        self._piece = memoryview(b"")
        self._piece_at = 0
        self._told = 0
        self.size = self._file.size()

    def batches(
        self,
        first_offset: int | None,
        begin: int = 0,
        end: int | None = None,
        epochs: Epochs = NOTHING_KNOWN,
        first_epoch: int = 0,
    ) -> Iterator[ShownBatch]:
        """The batches between two bytes. The first one must have `first_offset` if given, and `first_epoch`
        or a later leader epoch. Raises DamagedLogFile.
        """
        stop = self.size if end is None else end
        if self.size < stop:
            raise DamagedLogFile(self.path, self.size, f"the file ends here, but should have {stop:,} bytes")
        at, offset, epoch = begin, first_offset, first_epoch
        while at < stop:
            batch = self._batch(at, stop, offset, epochs, epoch)
            yield batch
            at, offset, epoch = batch.end, batch.next_offset, batch.header.leader_epoch

    def _batch(self, at: int, stop: int, offset: int | None, epochs: Epochs, epoch: int) -> ShownBatch:
        head = self._view(at, min(HEADER_BYTES, stop - at))
        if len(head) < HEADER_BYTES:
            raise DamagedLogFile(self.path, at, "a record batch is cut short")
        there, length = PLACE.unpack_from(head)
        size = length + LENGTH_OVERHEAD_BYTES
        if not HEADER_BYTES <= size <= stop - at:
            raise DamagedLogFile(self.path, at, f"a record batch can't have {size:,} bytes there")
        data = self._view(at, size)
        try:
            expected = there if offset is None else offset
            header = check_logged(data, expected, epochs.allowed_at(expected, epoch))
        except BatchError as error:
            raise DamagedLogFile(self.path, at, str(error)) from error
        return ShownBatch(self.path, at, header, data)

    def _view(self, at: int, size: int) -> memoryview:
        begin = at - self._piece_at
        if begin < 0 or begin + size > len(self._piece):
            self._piece = memoryview(self._file.read(max(size, PIECE_BYTES), at))
            self._piece_at, begin = at, 0
            end = at + len(self._piece)
            self._advance(max(end - self._told, 0))
            self._told = max(end, self._told)
        return self._piece[begin : begin + size]
