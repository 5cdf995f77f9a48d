"""How far a journal has come: its positions, and the order that always holds between them.

    synced <= written <= appended        durable is the lower of `replicated` and of what is safe here:
                                         synced, or written if the page cache is enough
                                         kept is the lower of `replicated_drafts` and written

All of them are ends: entries below a position have come so far. They start where recovery ended. Only
`replicated` and `replicated_drafts` ever go back, and never below `durable` and `kept`.
"""

from __future__ import annotations

from faircopy.errors import InvariantViolation

EVERYWHERE = 1 << 63
"""Above all positions: no other replica has to have an entry."""


class Watermarks:
    """The positions of one journal. Belongs to the event loop; only the journal moves them."""

    __slots__ = (
        "appended",
        "durable",
        "is_synced_first",
        "kept",
        "replicated",
        "replicated_drafts",
        "synced",
        "written",
    )

    appended: int
    """Entries up to here have a position; the next begins here. Above `written` they are only in memory."""
    written: int
    """Entries up to here are in the files: they survive the process, but perhaps not the machine."""
    synced: int
    """Entries up to here were put on disk by an fdatasync."""
    replicated: int
    """All other replicas that have to have an entry before it is durable have those up to here."""
    replicated_drafts: int
    """All other replicas that have to have an acked draft have the entries up to here in their files."""
    kept: int
    """Drafts up to here may be acked: these entries survive the process, and the loss of this machine if
    there are other replicas. On one broker, that is `written`.
    """
    durable: int
    """Entries up to here may have effects that others see (I2): no loss that is planned for takes them."""
    is_synced_first: bool
    """Whether an entry is safe here once it is synced, not yet when it is written."""

    def __init__(self, *, is_synced_first: bool, replicated: int = EVERYWHERE) -> None:
        self.is_synced_first = is_synced_first
        self.replicated = self.replicated_drafts = replicated
        self.start_at(0)

    def start_at(self, position: int) -> None:
        """Everything up to here was found in the files, and has been fsynced."""
        self.appended = self.written = self.synced = position
        self.durable = min(position, self.replicated)
        self.kept = min(position, self.replicated_drafts)

    def note_written(self, up_to: int) -> None:
        """The files have everything up to here. Raises InvariantViolation if that was never appended."""
        if not self.written <= up_to <= self.appended:
            raise InvariantViolation("a journal's written position lies below what is appended")
        self.written = up_to
        self.kept = up_to if up_to <= self.replicated_drafts else self.replicated_drafts
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

    def note_replicated(self, durable_up_to: int, drafts_up_to: int) -> None:
        """The other replicas that count have everything up to here: for what is durable, and for the acks of
        drafts. Either may be less than before, if others count now, or too few. That bounds what comes; what
        is durable or kept stays so.
        """
        self.replicated = max(durable_up_to, self.durable)
        self.durable = min(self.synced if self.is_synced_first else self.written, self.replicated)
        self.replicated_drafts = max(drafts_up_to, self.kept)
        self.kept = min(self.written, self.replicated_drafts)
