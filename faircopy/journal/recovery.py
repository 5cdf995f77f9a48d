"""Reading a journal from a position to its end, and telling a torn tail from damage (I9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faircopy.journal.entry import HEADER_BYTES, MAGIC_BYTES, BadEntry, Entry, check, decode_header
from faircopy.journal.segment import DamagedJournal, Segment

WINDOW_BYTES = 1 << 20
ZEROS = bytes(WINDOW_BYTES)
POSITION_AT = 24  # in an entry's header


class Recovered(NamedTuple):
    """One sound entry; `payload` is a view of a larger buffer: copy what is to be kept."""

    entry: Entry
    payload: memoryview


class Window:
    """A piece of a segment in memory, moved forward as it is read."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._first = segment.base
        self._data = memoryview(b"")

    def view(self, position: int, size: int) -> memoryview:
        """`size` bytes at `position`, or fewer where the file ends."""
        at = position - self._first
        if at < 0 or at + size > len(self._data):
            byte = self._segment.at(position)
            # No more than there is: to find the end of a file takes one more read.
            wanted = max(size, min(WINDOW_BYTES, self._segment.allocated - byte))
            self._data = memoryview(self._segment.opened.read(wanted, byte))
            self._first, at = position, 0
        return self._data[at : at + size]

    def entry(self, position: int) -> Recovered:
        """The sound entry at `position`. Raises BadEntry."""
        entry = decode_header(self.view(position, HEADER_BYTES), 0, position)
        # A torn length must not make us read (and allocate) more than the file has.
        if self._segment.at(entry.end) > self._segment.allocated:
            raise BadEntry("longer than its segment")
        whole = self.view(position, entry.length)
        check(whole, 0, entry.length, self._segment.seed)
        return Recovered(entry, whole[HEADER_BYTES:])


def read_entries(segments: Sequence[Segment], start: int) -> Iterator[Recovered]:
    """The sound entries from `start` on; ends at the first place that is not one. See `ensure_torn`."""
    position = start
    for number, segment in enumerate(segments):
        following = segments[number + 1].base if number + 1 < len(segments) else None
        if following is not None and following <= position:
            continue
        window = Window(segment)
        while position != following:
            try:
                recovered = window.entry(position)
            except BadEntry:
                break
            yield recovered
            position = recovered.entry.end
        if position != following:
            return


def ensure_torn(segments: Sequence[Segment], end: int, known_durable: int, *, lost_power: bool = True) -> None:
    """Raise DamagedJournal unless all that lies after `end` is a torn tail, which may be cut.

    It is one if `end` was not yet durable: not by a checkpoint (`known_durable`), nor by what a later sound entry says.
    If the machine has not lost power, all that was written is there, up to one place: then there is no later entry.
    """
    where = next((segment for segment in reversed(segments) if segment.base <= end), segments[0])
    if end < known_durable:
        raise DamagedJournal(
            f"{where.path} is damaged at byte {where.at(end)} (journal position {end}), below the checkpoint at "
            f"{known_durable}: restore the file from a backup or a replica",
            where.path,
            where.at(end),
        )
    for segment in segments:
        for entry in sound_entries_behind(segment, end):
            if entry.durable > end or not lost_power:
                was = "was durable" if entry.durable > end else "was written, and the machine has not lost power since"
                raise DamagedJournal(
                    f"{where.path} is damaged at byte {where.at(end)} (journal position {end}): it {was}, as the "
                    f"entry at position {entry.position} tells. Restore the file from a backup or a replica",
                    where.path,
                    where.at(end),
                )


def is_blank_from(segments: Sequence[Segment], end: int) -> bool:
    """Whether nothing stands from `end` on: no segment, and none but the zeros of reserved space."""
    if len(segments) > 1 and segments[-1].base >= end:
        return False
    last = segments[-1]
    at, size = last.at(end), last.opened.size()
    while at < size:
        piece = last.opened.read(min(WINDOW_BYTES, size - at), at)
        if not ZEROS.startswith(piece):
            return False
        at += len(piece)
    return True


def sound_entries_behind(segment: Segment, position: int) -> Iterator[Entry]:
    """Every sound entry of a segment that stands behind `position`, wherever it begins."""
    at = max(segment.at(position) + 1, segment.at(segment.base))
    size = segment.opened.size()
    while at < size:
        piece = segment.opened.read(WINDOW_BYTES, at)
        found = piece.find(MAGIC_BYTES)
        while found >= 0:
            entry = sound_entry_at(segment, at + found) if bears_its_position(segment, piece, found, at) else None
            if entry is not None:
                yield entry
            found = piece.find(MAGIC_BYTES, found + 1)
        # Step back by less than a magic, so that one across two pieces is seen, but always forward.
        at += max(len(piece) - len(MAGIC_BYTES) + 1, 1)


def bears_its_position(segment: Segment, piece: bytes, found: int, at: int) -> bool:
    """Whether an entry may begin there, as far as `piece`, which stands at byte `at`, can tell.

    A client's payload may be full of magics, and to look at each with a read of its own would take minutes.
    """
    position = at + found - segment.at(segment.base) + segment.base
    header = piece[found : found + HEADER_BYTES]
    return len(header) < HEADER_BYTES or header[POSITION_AT : POSITION_AT + 8] == position.to_bytes(8, "little")


def sound_entry_at(segment: Segment, byte: int) -> Entry | None:
    """The entry that begins at this byte of the file, if a sound one does."""
    position = byte - segment.at(segment.base) + segment.base
    try:
        return Window(segment).entry(position).entry
    except BadEntry:
        return None
