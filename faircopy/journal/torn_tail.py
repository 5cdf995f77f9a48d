"""Telling a torn tail, which a crash has left and which is cut, from damage, which is not (I9).

The place at which reading ends is a torn tail if what stood there was not durable yet. That it was, a checkpoint tells,
or a sound entry further on: each bears the position up to which the journal was synced when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faircopy.journal.entry import HEADER_BYTES, MAGIC_BYTES, BadEntry, Entry
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import WINDOW_BYTES, Window
from faircopy.journal.segment import Segment

POSITION_AT = 24  # in an entry's header


def ensure_torn(segments: Sequence[Segment], end: int, known_durable: int, *, lost_power: bool = True) -> None:
    """Raise DamagedJournal unless all that lies after `end` is a torn tail, which may be cut. Blocks.

    `known_durable` is the checkpoint's position. If the machine has not lost power, all that was written is there, up
    to one place: then there is no later entry.
    """
    where = next((segment for segment in reversed(segments) if segment.base <= end), segments[0])
    if end < known_durable:
        raise damaged(where, end, f", below the checkpoint at {known_durable}: restore")
    for segment in segments:
        for entry in sound_entries_after(segment, end):
            if entry.durable > end or not lost_power:
                was = "was durable" if entry.durable > end else "was written, and the machine has not lost power since"
                raise damaged(where, end, f": it {was}, as the entry at position {entry.position} tells. Restore")


def damaged(segment: Segment, position: int, what: str) -> DamagedJournal:
    """The error for a place at which there should be an entry; `what` ends with "restore"."""
    byte = segment.at(position)
    return DamagedJournal(
        f"{segment.path} is damaged at byte {byte} (journal position {position}){what} the file from a backup or a "
        f"replica",
        segment.path,
        byte,
    )


def sound_entries_after(segment: Segment, position: int) -> Iterator[Entry]:
    """Every sound entry of a segment that stands after `position`, wherever it begins."""
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
