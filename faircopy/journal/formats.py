"""The formats of entries in a segment, which the segment's magic names.

Only one is written; the older ones are only read. Positions and the fields of an entry mean the same in all
of them, so a reader of a journal does not have to know the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from faircopy.journal import format_3, format_4
from faircopy.journal.entry import Entry


class EntryFormat(Protocol):
    """How entries are read: a module for each format. `seed` is that of the segment."""

    def decode_header(self, buffer: bytes | memoryview, at: int, position: int, seed: int) -> Entry:
        """The header at byte `at` of `buffer`, which has this `position`. Raises BadEntry.

        Only `check` shows that an entry is sound.
        """

    def check(self, buffer: bytes | memoryview, at: int, length: int, seed: int) -> None:
        """Raise BadEntry unless the `length` bytes at `at` are a sound entry, with its payload."""

    def find_headers(self, piece: bytes, position: int, seed: int) -> Iterator[int]:
        """The positions of bytes that look like a header, anywhere in `piece`, which begins at `position`."""


WRITTEN: EntryFormat = format_4
WRITTEN_MAGIC = format_4.SEGMENT_MAGIC
FORMATS: Mapping[bytes, EntryFormat] = {format_3.SEGMENT_MAGIC: format_3, WRITTEN_MAGIC: WRITTEN}
