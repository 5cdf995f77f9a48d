"""A file that keeps some of the disk's space in reserve, for the day when the rest is used up.

Freeing space needs some space first: for a journal entry, a checkpoint after it, and pages of the state
store. The file's content means nothing, and losing it costs nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from faircopy.storage.failures import NoSpace, StorageFailure
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, exists, size_of, space_around

FILE = "reserve"
DISK_SHARE = 16
"""The reserve is at most a 16th of the disk."""


class Reserve:
    """The reserve in a directory, of `bytes_wanted`, or less on a small disk. All methods block."""

    def __init__(self, directory: Path, bytes_wanted: int) -> None:
        self._path = directory / FILE
        self.size_bytes = min(bytes_wanted, space_around(directory).total_bytes // DISK_SHARE)
        self.is_there = exists(self._path) and size_of(self._path) > 0

    def make(self) -> bool:
        """Create the file if the disk has room for it and for normal work; return whether it exists."""
        if not self.is_there and self.size_bytes and self.leaves(self.size_bytes, 2 * self.size_bytes):
            self.is_there = self._allocate()
        return self.is_there

    def _allocate(self) -> bool:
        delete_file(self._path)
        file = File(self._path, create=True)
        try:
            file.preallocate(self.size_bytes)
        except NoSpace:  # another process was faster, or there is a quota
            delete_file(self._path)
            return False
        return True

    def give_up(self) -> None:
        """Give the space back to the disk. This is fast: the file is one extent that was never written."""
        self.is_there = False
        with contextlib.suppress(StorageFailure):
            delete_file(self._path)

    def leaves(self, size: int, rest: int) -> bool:
        """Whether `size` bytes can be written so that `rest` bytes stay free."""
        return self.usable_bytes() >= size + rest

    def usable_bytes(self) -> int:
        """The free bytes of the disk. Raises StorageFailure."""
        return space_around(self._path.parent).usable_bytes
