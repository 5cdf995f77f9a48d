"""How old the segments of a data log are, by the steady clock; the times of files jump with the wall clock.

What was written since one look and the next counts as written at the second, so segments look younger, never older.

    log_segments  identity, base offset u64  -> began at u64, last written at u64, in milliseconds
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from faircopy.datalog.segment import LogSegment
from faircopy.storage.state_store import Change, DeleteRange, Put, StateStore

TABLE = "log_segments"
_BASE = struct.Struct(">Q")
_AGE = struct.Struct(">QQ")


class SegmentAges:
    """The ages of one log's segments."""

    def __init__(self, identity: bytes, store: StateStore) -> None:
        self._identity = identity
        self._store = store
        self._unstored: dict[int, LogSegment] = {}
        self._storing: dict[int, LogSegment] = {}

    def restore(self, segments: Iterable[LogSegment]) -> None:
        """Give segments the ages that the last checkpoint stored. Blocks."""
        found = {
            _BASE.unpack_from(key, len(self._identity))[0]: _AGE.unpack(value)
            for key, value in self._store.scan(TABLE, self._identity)
        }
        for segment in segments:
            if segment.base_offset in found:
                segment.began_ms, segment.written_ms = found[segment.base_offset]
                segment.stamped_bytes = segment.size

    def stamp(self, segments: Sequence[LogSegment], now_ms: int) -> None:
        """What was written since the last call was written by now."""
        for segment in reversed(segments):
            if segment.size == segment.stamped_bytes:
                return  # those before it are older
            segment.began_ms = now_ms if segment.began_ms is None else segment.began_ms
            segment.written_ms, segment.stamped_bytes = now_ms, segment.size
            self._unstored[segment.base_offset] = segment

    def checkpoint(self) -> list[Change]:
        """Changes that store what is new; they count as stored with `stored`."""
        self._storing |= self._unstored
        self._unstored = {}
        return [
            Put(TABLE, self._identity + _BASE.pack(base), _AGE.pack(segment.began_ms or 0, segment.written_ms or 0))
            for base, segment in self._storing.items()
        ]

    def stored(self) -> None:
        """The changes of the last `checkpoint` are in the store."""
        self._storing = {}

    def trim(self, base_offset: int) -> Change:
        """The change that drops segments before this one."""
        return DeleteRange(TABLE, self._identity, self._identity + _BASE.pack(base_offset))
