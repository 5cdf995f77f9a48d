"""The disk of a broker for tests. It is full on request: then its free bytes are counted, as if it were full
to the last one. It syncs nothing: its files are to outlive a process that is killed, and not the machine.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Sequence
from pathlib import Path

from faircopy.storage.system import Buffer, Space, System


class DiskForTests(System):
    """The machine's own system. While it `is_full`, files grow only by what others have given back."""

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._free_bytes: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether it is full."""
        return self._free_bytes is not None

    def fill(self) -> None:
        """Leave no free byte."""
        self._free_bytes = 0

    def free(self) -> None:
        """Give back all the space that was there."""
        self._free_bytes = None

    def write(self, descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        self._grow(descriptor, position + sum(map(len, buffers)))
        return super().write(descriptor, buffers, position)

    def allocate(self, descriptor: int, end: int) -> None:
        self._grow(descriptor, end)
        super().allocate(descriptor, end)

    def truncate(self, descriptor: int, size: int) -> None:
        self._give_back(self.size(descriptor) - size)
        super().truncate(descriptor, size)

    def delete(self, path: Path) -> None:
        found = self.status(path)
        super().delete(path)
        self._give_back(found.size if found is not None else 0)

    def sync(self, descriptor: int) -> None:
        """What is written stays, as long as the machine runs."""

    def sync_directory(self, path: Path) -> None:
        """So do names."""

    def space(self, path: Path) -> Space:
        found = super().space(path)
        return found if self._free_bytes is None else found._replace(usable_bytes=self._free_bytes)

    def _grow(self, descriptor: int, end: int) -> None:
        """Take what a file grows by. Raises OSError if there is not so much."""
        with self._counting:
            if self._free_bytes is None:
                return
            wanted = max(end - self.size(descriptor), 0)
            if wanted > self._free_bytes:
                raise OSError(errno.ENOSPC, "No space left on device")
            self._free_bytes -= wanted

    def _give_back(self, size: int) -> None:
        with self._counting:
            if self._free_bytes is not None:
                self._free_bytes += max(size, 0)
