"""What can go wrong with a journal, besides what the storage says: damage, and a full disk."""

from __future__ import annotations

from pathlib import Path

from faircopy.errors import FaircopyError


class DamagedJournal(FaircopyError):
    """Bytes of a journal that were durable have changed; the partition must not go on (I9).

    `path` and `byte` say where, if it is one place of one file.
    """

    def __init__(self, message: str, path: Path | None = None, byte: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.byte = byte


class JournalFull(FaircopyError):
    """The disk is full: nothing more is taken until there is space; what was taken before waits."""
