"""The segments of one journal, in order: found in a directory, appended to, cut at the end, and reclaimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import overload

from faircopy.journal.errors import DamagedJournal
from faircopy.journal.segment import HEADER_BYTES, SUFFIX, Segment
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, list_directory, make_directory, sync_directory, with_suffix

WINDOW_BYTES = 1 << 20
ZEROS = bytes(WINDOW_BYTES)


class Segments(Sequence[Segment]):
    """Ascending by position and without gaps; entries are appended to the last one. Belongs to the event
    loop, except for methods that say that they block.
    """

    def __init__(self, directory: Path, segments: Iterable[Segment] = ()) -> None:
        self.directory = directory
        self._segments = list(segments)

    def open(self, journal: bytes) -> None:
        """Open the segments in the directory of the journal with this identity; create the directory if
        necessary.

        Blocks. Raises DamagedJournal, StorageFailure.
        """
        make_directory(self.directory)
        found = list_directory(self.directory)
        for leftover in with_suffix(".tmp", found):
            delete_file(leftover)
        self._segments = [Segment.open(path, journal) for path in with_suffix(SUFFIX, found)]

    @overload
    def __getitem__(self, index: int) -> Segment: ...

    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...

    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self._segments[index]

    def __len__(self) -> int:
        return len(self._segments)

    def holding(self, position: int) -> Segment:
        """The segment that holds `position`. Raises DamagedJournal."""
        for segment in reversed(self._segments):
            if segment.base <= position:
                return segment
        raise no_longer_held(self.directory, position)

    def end_of(self, segment: Segment, end: int) -> int:
        """The position where a segment ends: where the next one begins, or `end`, that of the journal."""
        return next((each.base for each in self._segments if each.base > segment.base), end)

    def files_beyond(self, position: int) -> list[File]:
        """The files that hold bytes beyond `position`, oldest first. They stay open even if deleted."""
        files = []
        for segment in reversed(self._segments):
            if segment.file is not None:
                files.append(segment.file)
            if segment.base <= position:
                break
        files.reverse()
        return files

    def close(self) -> None:
        """Close the files, which must be synced (I10). They are opened again when they are used."""
        for segment in self._segments:
            if segment.file is not None:
                segment.file.close()

    # -- the end ---------------------------------------------------------------------------------------------

    def for_append(
        self, position: int, length: int, segment_bytes: int, new_salt: Callable[[], int]
    ) -> Segment:
        """The segment for an entry of `length` bytes at `position`, the journal's end. It is the last one, or
        a new one if the last would get larger than `segment_bytes`. An entry that is larger than that gets a
        segment of its own.
        """
        if self._segments:
            last = self._segments[-1]
            used = position - last.base
            if used == 0 or used + length <= segment_bytes - HEADER_BYTES:
                return last
        segment = Segment.planned(self.directory, position, new_salt())
        self._segments.append(segment)
        return segment

    def is_blank_from(self, end: int) -> bool:
        """Whether there is nothing from `end` on: no segment, only zeros of reserved space. Blocks."""
        if len(self._segments) > 1 and self._segments[-1].base >= end:
            return False
        return is_blank(self._segments[-1], end)

    def cut(self, end: int) -> None:
        """Durably remove all bytes after `end`: old bytes must never be mistaken for entries. Blocks."""
        while len(self._segments) > 1 and self._segments[-1].base >= end:
            delete_file(self._segments.pop().path)
        last = self._segments[-1]
        last.truncate(end)
        last.opened.sync()
        sync_directory(self.directory)

    def shrink(self, end: int) -> None:
        """Give back the space that is reserved for entries after `end`, so that the next start finds nothing
        there. Only for a journal to which nothing more will be appended. Blocks.
        """
        if self._segments and self._segments[-1].file is not None:
            self._segments[-1].truncate(end)

    def renew(self, start: int) -> None:
        """Write everything from `start` on again (I10): see `Segment.renew`. Blocks."""
        for segment in self._segments:
            if segment.reaches_beyond(start):
                segment.renew()

    # -- the start -------------------------------------------------------------------------------------------

    def reclaim(self, below: int) -> list[Segment]:
        """Forget the segments wholly below position `below` (I7) and return them. The last one with a file
        stays: a journal without files can't be told from one that was lost.
        """
        later = self._segments[1:]
        needed = (n for n, segment in enumerate(later) if segment.base > below or segment.file is None)
        keep = next(needed, len(later))
        forgotten, self._segments = self._segments[:keep], self._segments[keep:]
        return forgotten

    def reclaim_all(self) -> list[Segment]:
        """Forget all segments of an abandoned journal, and return them."""
        forgotten, self._segments = self._segments, []
        return forgotten


def no_longer_held(directory: Path, position: int) -> DamagedJournal:
    """The error for a position below the oldest segment in the directory."""
    return DamagedJournal(f"{directory} no longer holds position {position}", directory)


def is_blank(segment: Segment, start: int) -> bool:
    """Whether a segment holds only zeros from position `start` on. Blocks."""
    at, size = segment.at(start), segment.opened.size()
    while at < size:
        piece = segment.opened.read(min(WINDOW_BYTES, size - at), at)
        if not ZEROS.startswith(piece):
            return False
        at += len(piece)
    return True


def sync_files(files: list[File]) -> None:
    """fdatasync each file, in this order. Blocks."""
    for file in files:
        file.sync()
