"""Segment files of a data log: record batches one after another. A file is named after its first offset."""

from __future__ import annotations

from pathlib import Path

from faircopy.datalog.checked import CheckedBytes
from faircopy.storage.epoch_history import NO_EPOCHS, Epochs
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, exists, reaches, size_of
from faircopy.wire.batch import HEADER_BYTES, BatchError, check_logged, read_header

SUFFIX = ".log"
NO_TIME_MS = -(1 << 63)
UNKNOWN_MS = (1 << 63) - 1


def file_name(base_offset: int) -> str:
    """The name of the segment file that starts at this offset. Names sort by offset."""
    return f"{base_offset:020d}{SUFFIX}"


class LogSegment:
    """One segment file. It is opened, or created if `is_new`, when it is first needed: most old ones never
    are.

    `checked` says which of its bytes may be served: those that this process wrote, and older ones once they
    are checked. `epochs` are the leader epochs that the older batches must carry, according to the
    checkpoint. `began_ms` and `written_ms` are the times of the first and the last write that were noted
    (`datalog.segment_times`); they cover the first `stamped_bytes`. No visible message has a time after
    `latest_ms`.
    """

    __slots__ = (
        "_file", "base_offset", "began_ms", "checked", "epochs", "is_new", "latest_ms", "path", "size",
        "stamped_bytes", "written_ms",
    )  # fmt: skip

    def __init__(
        self, path: Path, base_offset: int, size: int, epochs: Epochs = NO_EPOCHS, *, is_new: bool = False
    ) -> None:
        self.path = path
        self.is_new = is_new
        self.base_offset = base_offset
        self.size = size  # bytes placed; they are all written once their offsets are visible
        self.checked = CheckedBytes(size)
        self.epochs = epochs
        self.began_ms: int | None = None
        self.written_ms: int | None = None
        self.stamped_bytes = 0
        self.latest_ms = NO_TIME_MS if is_new else UNKNOWN_MS
        self._file: File | None = None

    @classmethod
    def found(cls, path: Path, epochs: Epochs = NO_EPOCHS) -> LogSegment:
        """A segment file that is on disk."""
        return cls(path, int(path.stem), size_of(path), epochs)

    def begin_again_at(self, byte: int) -> None:
        """Treat the file as if it ended at `byte`: what follows is written again."""
        self.size = byte
        self.checked = CheckedBytes(byte)

    def cut(self) -> None:
        """Drop what the file holds after the segment's end. Blocks."""
        if size_of(self.path) > self.size:
            self.file.truncate(self.size)
            self.file.sync()

    @property
    def file(self) -> File:
        """The open file. Raises StorageFailure, also for a deleted file: readers may come too late."""
        file = self._file
        if file is None:
            # A new segment's file may already exist: a crash left it, and it is written again.
            self._file = file = File(self.path, create=self.is_new and not exists(self.path))
            self.is_new = False
        return file

    def sync(self) -> None:
        """Make durable what this process has written. Blocks."""
        file = self._file
        if file is not None:  # otherwise nothing was written, or the file is deleted
            file.sync()

    def close(self) -> None:
        """Close the file. It is opened again when it is used."""
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Close and delete the file. Blocks: freeing the blocks of a large file takes milliseconds."""
        delete_file(self.path)
        self._file = None


def holds_batch(path: Path, byte: int, offset: int, leader_epochs: range) -> bool:
    """Whether a file holds, at `byte`, a sound batch of this offset and of one of these epochs. Blocks."""
    if not reaches(path, byte + HEADER_BYTES):
        return False
    file = File(path, read_only=True)
    head = file.read(HEADER_BYTES, byte)
    if len(head) < HEADER_BYTES or read_header(head).size_bytes > file.size() - byte:
        return False
    try:
        check_logged(file.read(read_header(head).size_bytes, byte), offset, leader_epochs)
    except BatchError:
        return False
    return True
