"""Reading a journal from a position on, as far as its entries are sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faircopy.journal import entry_format
from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry
from faircopy.journal.segment import Segment

WINDOW_BYTES = 1 << 20


class Recovered(NamedTuple):
    """One sound entry; `payload` is a view of a larger buffer: copy it if you keep it."""

    entry: Entry
    payload: memoryview


class Window:
    """A piece of a segment in memory, moved forward as it is read."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._first = segment.base
        self._data = memoryview(b"")

    def view(self, position: int, size: int) -> memoryview:
        """`size` bytes at `position`, or fewer at the end of the file."""
        at = position - self._first
        if at < 0 or at + size > len(self._data):
            byte = self._segment.at(position)
            # Not beyond the end: to find the end of a file takes one more read.
            wanted = max(size, min(WINDOW_BYTES, self._segment.allocated - byte))
            self._data = memoryview(self._segment.opened.read(wanted, byte))
            self._first, at = position, 0
        return self._data[at : at + size]

    def entry(self, position: int) -> Recovered:
        """The sound entry at `position`. Raises BadEntry."""
        segment = self._segment
        entry = entry_format.decode_header(self.view(position, HEADER_BYTES), 0, position, segment.seed)
        # A torn length must not make us read (and allocate) more than the file has.
        if segment.at(entry.end) > segment.allocated:
            raise BadEntry("longer than its segment")
        whole = self.view(position, entry.length)
        entry_format.check(whole, 0, entry.length, segment.seed)
        return Recovered(entry, whole[HEADER_BYTES:])


def read_entries(segments: Sequence[Segment], start: int) -> Iterator[Recovered]:
    """The sound entries from `start` on, up to the first place without one. See `torn_tail`. Blocks."""
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
