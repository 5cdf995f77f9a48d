"""Pieces of a journal for a follower: the bytes of its own files, with what their CRCs are seeded with."""

from __future__ import annotations

from typing import NamedTuple

from faircopy.errors import invariant
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.segment import Segment
from faircopy.journal.segments import Segments, no_longer_held
from faircopy.storage.system import Buffer


class Piece(NamedTuple):
    """Bytes of one segment from `position` on. They may begin and end within an entry. `seed` is that of the
    segment, for the CRCs of its headers.
    """

    position: int
    seed: int
    content: Buffer


def read_piece(segments: Segments, position: int, synced: int, bytes_max: int, *, is_cached: bool) -> Piece:
    """At most `bytes_max` bytes from `position` on, which is below `synced`. They end at `synced`, and where
    their segment ends.

    With `is_cached`, they are read only from the page cache. Otherwise this blocks, and may run on a thread.
    Raises DamagedJournal if the position is no longer there, or bytes are missing; StorageFailure; NotCached
    when reading from the cache.
    """
    invariant(position < synced, "a piece begins below what is synced")
    segment = segments.holding(position)
    size = min(bytes_max, synced - position, segments.end_of(segment, synced) - position)
    content = _read(segment, position, size, is_cached=is_cached)
    if len(content) < size:
        byte = segment.at(position) + len(content)
        raise DamagedJournal(
            f"{segment.path} ends at byte {byte}, before position {position + size}, up to which it was "
            f"synced: restore it from a backup or a replica",
            segment.path,
            byte,
        )
    return Piece(position, segment.seed, content)


def _read(segment: Segment, position: int, size: int, *, is_cached: bool) -> Buffer:
    file = segment.file
    if file is None:  # it was reclaimed meanwhile
        raise no_longer_held(segment.path.parent, position)
    return (file.read_cached if is_cached else file.read)(size, segment.at(position))
