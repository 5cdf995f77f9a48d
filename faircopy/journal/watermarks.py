"""How far a journal has come: four positions, and the order that always holds between them.

    synced <= written <= appended        durable is synced, or written if the page cache is enough

All of them are ends: entries below a position have come so far. They start where recovery ended, and never go
back.
"""

from __future__ import annotations

from faircopy.errors import InvariantViolation


class Watermarks:
    """The positions of one journal. Belongs to the event loop; only the journal moves them."""

    __slots__ = ("appended", "durable", "is_synced_first", "synced", "written")

    appended: int
    """Entries up to here have a position; the next begins here. Above `written` they are only in memory."""
    written: int
    """Entries up to here are in the files: they survive the process, but perhaps not the machine."""
    synced: int
    """Entries up to here were put on disk by an fdatasync."""
    durable: int
    """Entries up to here may have effects that others see (I2): `synced`, or `written`."""
    is_synced_first: bool
    """Whether `durable` is `synced`: nothing is shown before it is fsynced."""

    def __init__(self, *, is_synced_first: bool) -> None:
        self.is_synced_first = is_synced_first
        self.start_at(0)

    def start_at(self, position: int) -> None:
        """Everything up to here was found in the files, and has been fsynced."""
        self.appended = self.written = self.synced = self.durable = position

    def note_written(self, up_to: int) -> None:
        """The files have everything up to here. Raises InvariantViolation if that was never appended."""
        if not self.written <= up_to <= self.appended:
            raise InvariantViolation("a journal's written position lies below what is appended")
        self.written = up_to
        if not self.is_synced_first:
            self.durable = up_to

    def note_synced(self, up_to: int) -> None:
        """An fdatasync has ended that began when everything up to here was written. They may end in any
        order.

        Raises InvariantViolation if that was never written.
        """
        if up_to > self.written:
            raise InvariantViolation("a journal's synced position lies below what is written")
        if up_to > self.synced:
            self.synced = up_to
            if self.is_synced_first:
                self.durable = up_to
