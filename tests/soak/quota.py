"""A quota on the broker's files. It is used up while a control file exists."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from faircopy.storage.system import Buffer, System


class QuotaSystem(System):
    """The machine's own system, but no file grows while `full` exists. Reserved space may be written."""

    def __init__(self, full: Path) -> None:
        self._full = full

    def write(self, descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        self._ensure_space(descriptor, position + sum(map(len, buffers)))
        return super().write(descriptor, buffers, position)

    def allocate(self, descriptor: int, end: int) -> None:
        self._ensure_space(descriptor, end)
        super().allocate(descriptor, end)

    def _ensure_space(self, descriptor: int, end: int) -> None:
        if self._full.exists() and end > self.size(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")
