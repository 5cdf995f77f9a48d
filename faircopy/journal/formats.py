"""The formats in which entries may stand in a segment: its magic says which.

One is written, those before it are only read. Positions mean the same in all, and so do the fields of an
entry: a reader of a journal need not know the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from faircopy.journal import format_3, format_4
from faircopy.journal.entry import Entry


class EntryFormat(Protocol):
    """How entries are read; a module for each format. `seed` is that of the segment."""

    def decode_header(self, buffer: bytes | memoryview, at: int, position: int, seed: int) -> Entry:
        """The header at byte `at` of `buffer`, which stands at `position`. Raises BadEntry.

        Only `check` tells that an entry is sound.
        """

    def check(self, buffer: bytes | memoryview, at: int, length: int, seed: int) -> None:
        """Raise BadEntry unless the `length` bytes at `at` are a sound entry, with its payload."""

    def find_headers(self, piece: bytes, position: int, seed: int) -> Iterator[int]:
        """The positions of what looks like a header, at any byte of `piece`, which begins at `position`."""


WRITTEN: EntryFormat = format_4
WRITTEN_MAGIC = format_4.SEGMENT_MAGIC
FORMATS: Mapping[bytes, EntryFormat] = {format_3.SEGMENT_MAGIC: format_3, WRITTEN_MAGIC: WRITTEN}
