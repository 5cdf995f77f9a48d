"""Telling a torn tail, which a crash leaves and which is cut, from damage, which is not cut (I9).

The place where reading ends is a torn tail if the entry there was not durable yet. A checkpoint shows that it
was durable, or a sound entry further on: each entry holds the position up to which the journal was synced
when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faircopy.journal import entry_format
from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import WINDOW_BYTES, Window
from faircopy.journal.segment import Segment


def ensure_torn(
    segments: Sequence[Segment], end: int, known_durable: int, *, lost_power: bool = True
) -> None:
    """Raise DamagedJournal unless all bytes after `end` are a torn tail, which may be cut. Blocks.

    `known_durable` is the checkpoint's position. If the machine has not lost power, the written bytes have no
    holes, so there must be no later entry.
    """
    where = next((segment for segment in reversed(segments) if segment.base <= end), segments[0])
    if end < known_durable:
        raise damaged(where, end, f", below the checkpoint at {known_durable}: restore")
    for segment in segments:
        for entry in sound_entries_after(segment, end):
            if entry.durable > end or not lost_power:
                was = (
                    "was durable"
                    if entry.durable > end
                    else "was written, and the machine has not lost power since"
                )
                raise damaged(
                    where, end, f": it {was}, as the entry at position {entry.position} tells. Restore"
                )


def damaged(segment: Segment, position: int, what: str) -> DamagedJournal:
    """The error for a place where there should be an entry; `what` ends with "restore"."""
    byte = segment.at(position)
    return DamagedJournal(
        f"{segment.path} is damaged at byte {byte} (journal position {position}){what} the file from a "
        f"backup or a replica",
        segment.path,
        byte,
    )


def sound_entries_after(segment: Segment, position: int) -> Iterator[Entry]:
    """Every sound entry of a segment after `position`, at whatever byte it begins."""
    at = max(position + 1, segment.base)
    end = segment.position_at(segment.opened.size())
    while at < end:
        piece = segment.opened.read(WINDOW_BYTES, segment.at(at))
        for found in entry_format.find_headers(piece, at, segment.seed):
            try:
                yield Window(segment).entry(found).entry
            except BadEntry:
                continue
        # Step back by less than a header, so that one across two pieces is seen, but always forward.
        at += max(len(piece) - HEADER_BYTES + 1, 1)
