"""How much was appended to a follower's journals, and is not written yet.

It is asked after each message, so it is counted and not added up: there may be thousands of journals.
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.journal.journal import Journal


class Ahead(NamedTuple):
    """A journal that is not written up to its end."""

    journal: Journal
    size: int


class Unwritten:
    """The journals that are not written up to their ends. `size`: the bytes of them all, as of the last note
    of each.
    """

    __slots__ = ("_ahead", "size")

    def __init__(self) -> None:
        self._ahead: dict[bytes, Ahead] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._ahead)

    def note(self, journal: Journal) -> None:
        """Something was appended to a journal."""
        self.forget(journal.identity)
        marks = journal.watermarks
        size = marks.appended - marks.written
        if size:
            self._ahead[journal.identity] = Ahead(journal, size)
            self.size += size

    def note_moved(self, identity: bytes) -> None:
        """More of a journal is written, or synced."""
        ahead = self._ahead.get(identity)
        if ahead is not None:
            self.note(ahead.journal)

    def forget(self, identity: bytes) -> None:
        """A journal is deleted."""
        ahead = self._ahead.pop(identity, None)
        if ahead is not None:
            self.size -= ahead.size
