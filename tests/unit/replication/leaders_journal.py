"""A journal of a leader as its files have it: entries, in segments of different seeds, and pieces of them."""

from __future__ import annotations

from crc32c import crc32c

from faircopy.journal.entry import HEADER_BYTES, Entry, Kind, TransactionId
from faircopy.journal.entry_format import encode_header
from faircopy.replication.histories import ends_of
from faircopy.replication.messages import ComparedJournal, Data
from faircopy.storage.epoch_history import NO_EPOCHS

P, Q, R = b"p" * 20, b"q" * 20, b"r" * 20


class LeadersJournal:
    """`segments` has the seed of each segment with the position at which it begins."""

    def __init__(self, identity: bytes = P) -> None:
        self.identity = identity
        self.content = b""
        self.segments = [(0, 7)]
        self.entries: list[Entry] = []
        self.payloads: list[bytes] = []
        self.epochs = NO_EPOCHS

    @property
    def end(self) -> int:
        return len(self.content)

    def add(self, payload: bytes = b"payload", kind: int = Kind.DRAFT, epoch: int | None = None) -> Entry:
        epoch = self.epochs.newest if epoch is None else epoch
        entry = Entry(
            kind, self.end, HEADER_BYTES + len(payload), 3, epoch, -1, TransactionId(4, 2, 9), self.end // 2
        )
        self.epochs = self.epochs.note(epoch, self.end)
        self.content += encode_header(entry, payload, self.segments[-1][1], crc32c(payload)) + payload
        self.entries.append(entry)
        self.payloads.append(payload)
        return entry

    def begin_segment(self, seed: int) -> None:
        self.segments.append((self.end, seed))

    def compared(self, start: int = 0) -> ComparedJournal:
        return ComparedJournal(self.identity, start, self.end, ends_of(self.epochs, start, self.end))

    def data(self, start: int = 0, end: int | None = None) -> Data:
        """The bytes between two positions, or as many of them as the segment has that holds the first."""
        place, seed = max(segment for segment in self.segments if segment[0] <= start)
        following = min((each for each, _ in self.segments if each > start), default=self.end)
        stop = min(self.end if end is None else end, following)
        assert place <= start < stop
        return Data(self.identity, start, seed, self.content[start:stop])

    def end_after(self, position: int) -> int:
        """The end of the entry that holds a position."""
        return next(entry.end for entry in self.entries if entry.end > position)
