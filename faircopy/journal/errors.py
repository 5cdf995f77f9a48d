"""The errors of a journal besides those of storage: damage, and a full disk."""

from __future__ import annotations

from pathlib import Path

from faircopy.errors import FaircopyError


class DamagedJournal(FaircopyError):
    """Durable bytes of a journal have changed; the partition must stop (I9).

    `path` and `byte` name the place, if it is a single place in a file.
    """

    def __init__(self, message: str, path: Path | None = None, byte: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.byte = byte


class Misplaced(FaircopyError):
    """An entry that another replica wrote does not follow those that this journal has."""


class JournalFull(FaircopyError):
    """The disk is full: nothing more is accepted until there is space; accepted entries wait."""


class NotEnoughReplicas(JournalFull):
    """Replicas are missing, which is like a full disk: nothing more is accepted until they are back."""
