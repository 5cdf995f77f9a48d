"""Walking a transaction's reverse linked list: from its last draft back to its first (I3).

The list is read through windows that end where the current draft ends. So one read covers many drafts that
are close together, as they are when few other transactions write at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faircopy.journal import entry_format
from faircopy.journal.entry import HEADER_BYTES, NOWHERE, BadEntry, Entry, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.recent import Draft
from faircopy.journal.segment import Segment
from faircopy.journal.segments import Segments

WINDOW_BYTES = 256 << 10

ReadBytes = Callable[[Segment, int, int], bytes]


class HasSegments(Protocol):
    """The part of a journal that a walk needs."""

    @property
    def segments(self) -> Segments:
        """Its segments."""


def read_from_disk(segment: Segment, position: int, size: int) -> bytes:
    """Read journal bytes, waiting for the disk if necessary."""
    return segment.opened.read(size, segment.at(position))


def read_from_cache(segment: Segment, position: int, size: int) -> bytes:
    """Read journal bytes from the page cache. Raises NotCached."""
    return segment.opened.read_cached(size, segment.at(position))


class ReverseWalk:
    """A walk over one transaction's drafts in one journal."""

    def __init__(self, journal: HasSegments, transaction: TransactionId, read: ReadBytes) -> None:
        self._segments = journal.segments
        self._transaction = transaction
        self._read = read
        self._segment: Segment | None = None
        self._first = 0
        self._data = memoryview(b"")

    def collect(self, head: int, keep_bytes: int) -> list[Draft]:
        """The drafts from first to last. Payloads are kept up to `keep_bytes` in total; the others are None.
        Only the headers of those are read, and their payloads are checked when `payload` reads them.

        Raises DamagedJournal, StorageFailure; NotCached when reading from the cache.
        """
        drafts: list[Draft] = []
        position = head
        while position != NOWHERE:
            entry = self._link(position)
            keep_bytes -= entry.payload_bytes
            drafts.append(Draft(entry, self._sound(entry) if keep_bytes >= 0 else None))
            position = entry.previous
        drafts.reverse()
        return drafts

    def check(self, head: int) -> None:
        """Check every draft from the last to the first, and each one before its link is followed. Raises
        DamagedJournal, StorageFailure.
        """
        position = head
        while position != NOWHERE:
            entry = self._link(position)
            self.payload(entry)
            position = entry.previous

    def payload(self, entry: Entry) -> memoryview:
        """The payload of a draft on the list, read on its own: for a second pass over a large transaction."""
        segment = self._segments.holding(entry.position)
        whole = memoryview(self._read(segment, entry.position, entry.length))
        try:
            entry_format.check(whole, 0, entry.length, segment.seed)
        except BadEntry as error:
            raise self._damaged(entry.position, str(error)) from None
        return whole[HEADER_BYTES:]

    def _link(self, position: int) -> Entry:
        """The header of one of the transaction's drafts, with the link to the previous one."""
        entry = self._header(position)
        if entry.transaction != self._transaction or not NOWHERE <= entry.previous < position:
            raise self._damaged(position, "an entry off the transaction's list")
        return entry

    def _header(self, position: int) -> Entry:
        segment = self._segments.holding(position)
        try:
            entry = entry_format.decode_header(
                self._view(segment, position, HEADER_BYTES), 0, position, segment.seed
            )
        except BadEntry as error:
            raise self._damaged(position, str(error)) from None
        # A damaged length must not make us read (and allocate) more than the file has.
        if segment.at(entry.end) > segment.allocated:
            raise self._damaged(position, "longer than its segment")
        return entry

    def _sound(self, entry: Entry) -> memoryview:
        segment = self._segments.holding(entry.position)
        whole = self._view(segment, entry.position, entry.length)
        try:
            entry_format.check(whole, 0, entry.length, segment.seed)
        except BadEntry as error:
            raise self._damaged(entry.position, str(error)) from None
        return whole[HEADER_BYTES:]

    def _view(self, segment: Segment, position: int, size: int) -> memoryview:
        at = position - self._first
        if segment is not self._segment or at < 0 or at + size > len(self._data):
            end = position + size
            # Never before the start of the segment; at least the requested size.
            first = min(max(segment.base, end - WINDOW_BYTES), position)
            self._data = memoryview(self._read(segment, first, end - first))
            self._segment, self._first, at = segment, first, position - first
        return self._data[at : at + size]

    def _damaged(self, position: int, what: str) -> DamagedJournal:
        segment = self._segments.holding(position)
        return DamagedJournal(
            f"{segment.path} is damaged at byte {segment.at(position)} (journal position {position}, "
            f"draft of {self._transaction}): {what}. Restore the file from a backup or a replica",
            segment.path,
            segment.at(position),
        )
