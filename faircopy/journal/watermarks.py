"""How far a journal has come: its positions, and the order that always holds between them.

    synced <= written <= appended        durable is the lower of `replicated` and of what is safe here:
                                         synced, or written if the page cache is enough

All of them are ends: entries below a position have come so far. They start where recovery ended. Only
`replicated` ever goes back, and never below `durable`.
"""

from __future__ import annotations

from faircopy.errors import InvariantViolation

EVERYWHERE = 1 << 63
"""Above all positions: no other replica has to have an entry."""


class Watermarks:
    """The positions of one journal. Belongs to the event loop; only the journal moves them."""

    __slots__ = ("appended", "durable", "is_synced_first", "replicated", "synced", "written")

    appended: int
    """Entries up to here have a position; the next begins here. Above `written` they are only in memory."""
    written: int
    """Entries up to here are in the files: they survive the process, but perhaps not the machine."""
    synced: int
    """Entries up to here were put on disk by an fdatasync."""
    replicated: int
    """All other replicas that have to have an entry before it is durable have those up to here."""
    durable: int
    """Entries up to here may have effects that others see (I2): no loss that is planned for takes them."""
    is_synced_first: bool
    """Whether an entry is safe here once it is synced, not yet when it is written."""

    def __init__(self, *, is_synced_first: bool, replicated: int = EVERYWHERE) -> None:
        self.is_synced_first = is_synced_first
        self.replicated = replicated
        self.start_at(0)

    def start_at(self, position: int) -> None:
        """Everything up to here was found in the files, and has been fsynced."""
        self.appended = self.written = self.synced = position
        self.durable = min(position, self.replicated)

    def note_written(self, up_to: int) -> None:
        """The files have everything up to here. Raises InvariantViolation if that was never appended."""
        if not self.written <= up_to <= self.appended:
            raise InvariantViolation("a journal's written position lies below what is appended")
        self.written = up_to
        if not self.is_synced_first:
            self.durable = min(up_to, self.replicated)

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
                self.durable = min(up_to, self.replicated)

    def note_replicated(self, up_to: int) -> None:
        """The other replicas that count have everything up to here. It may be less than before, if others
        count now, or too few. That bounds what comes; what is durable stays so.
        """
        self.replicated = max(up_to, self.durable)
        self.durable = min(self.synced if self.is_synced_first else self.written, self.replicated)
