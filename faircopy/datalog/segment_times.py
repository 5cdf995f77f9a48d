"""The times of a data log's segments: when they were written, and how late their messages are.

When they were written is told by the steady clock, since file times jump with the wall clock. Data written
between two looks counts as written at the second. Segments may look younger, never older.

    log_segments  identity, base offset u64 -> first written at u64, last written at u64, latest message i64,
                                               in milliseconds
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from faircopy.datalog.segment import LogSegment
from faircopy.storage.state_store import Change, DeleteRange, Put, StateStore

TABLE = "log_segments"
_BASE = struct.Struct(">Q")
_TIMES = struct.Struct(">QQq")


def stored_latest_ms(store: StateStore, identity: bytes) -> Iterator[tuple[int, int]]:
    """The base offset of each segment, and the time that none of its stored messages is later than."""
    for key, value in store.scan(TABLE, identity):
        _began_ms, _written_ms, latest_ms = _TIMES.unpack(value)
        yield _BASE.unpack_from(key, len(identity))[0], latest_ms


class SegmentTimes:
    """The times of one log's segments."""

    def __init__(self, identity: bytes, store: StateStore) -> None:
        self._identity = identity
        self._store = store
        self._unstored: dict[int, LogSegment] = {}
        self._storing: dict[int, LogSegment] = {}

    def restore(self, segments: Iterable[LogSegment]) -> None:
        """Restore the times that the last checkpoint stored. Blocks."""
        found = {
            _BASE.unpack_from(key, len(self._identity))[0]: value
            for key, value in self._store.scan(TABLE, self._identity)
        }
        for segment in segments:
            value = found.get(segment.base_offset)
            if value is not None:
                segment.began_ms, segment.written_ms, segment.latest_ms = _TIMES.unpack(value)
                segment.stamped_bytes = segment.size

    def stamp(self, segments: Sequence[LogSegment], now_ms: int) -> None:
        """Note that everything written since the last call was written by `now_ms`."""
        for segment in reversed(segments):
            if segment.size == segment.stamped_bytes:
                return  # those before it are older
            segment.began_ms = now_ms if segment.began_ms is None else segment.began_ms
            segment.written_ms, segment.stamped_bytes = now_ms, segment.size
            self._unstored[segment.base_offset] = segment

    def checkpoint(self) -> list[Change]:
        """The changes that store what is new. They count as stored when `stored` is called."""
        self._storing |= self._unstored
        self._unstored = {}
        return [
            Put(
                TABLE,
                self._identity + _BASE.pack(base),
                _TIMES.pack(segment.began_ms or 0, segment.written_ms or 0, segment.latest_ms),
            )
            for base, segment in self._storing.items()
        ]

    def stored(self) -> None:
        """The changes of the last `checkpoint` are in the store."""
        self._storing = {}

    def trim(self, base_offset: int) -> Change:
        """The change that drops the times of segments before this one."""
        return DeleteRange(TABLE, self._identity, self._identity + _BASE.pack(base_offset))
