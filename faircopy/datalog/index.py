"""The sparse index of a data log: from an offset, or a time, to a place in a segment file.

It has one entry for about each 64 KiB of log, at the start of a batch. Entries made since the last checkpoint
are in memory only; a checkpoint moves them to LMDB, together with the rest of what it stores (I6). Keys start
with the partition's 20-byte identity.

    offset_index  identity, offset u64                  -> segment base offset u64, byte u64
    time_index    identity, greatest time so far u64    -> offset u64 at or shortly before that time's batch
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import NamedTuple

from faircopy.storage.state_store import Change, Delete, DeleteRange, Put, StateStore

INTERVAL_BYTES = 64 << 10
TRIMMED_TIMES_MAX = 4096
_OFFSET = struct.Struct(">Q")
_PLACE = struct.Struct(">QQ")
_TIME_BIAS = 1 << 63  # times may be negative; keys sort as unsigned
NO_TIME_MS = -(1 << 63)


class Place(NamedTuple):
    """Where a batch starts."""

    offset: int
    segment_base: int
    byte: int


def time_key(identity: bytes, time_ms: int) -> bytes:
    """The key of a time in milliseconds. Keys of one partition sort by time, even for times before 1970."""
    return identity + _OFFSET.pack(time_ms + _TIME_BIAS)


def decode_place(key: bytes, value: bytes) -> Place:
    """The place in a record of the offset index."""
    return Place(_OFFSET.unpack(key[-8:])[0], *_PLACE.unpack(value))


class SparseIndex:
    """The index of one data log."""

    def __init__(self, identity: bytes, store: StateStore, greatest_time_ms: int = NO_TIME_MS) -> None:
        self._identity = identity
        self._store = store
        self._offsets: list[int] = []
        self._places: list[Place] = []
        self._times: list[int] = []
        self._time_offsets: list[int] = []
        self._bytes_since_entry = INTERVAL_BYTES
        self._stored_below = 0
        self.greatest_time_ms = greatest_time_ms

    def add(self, offset: int, segment_base: int, byte: int, size: int, max_time_ms: int) -> None:
        """Note a batch. Most batches leave no entry; the first batch of each segment always does."""
        if self._bytes_since_entry >= INTERVAL_BYTES or byte == 0:
            self._offsets.append(offset)
            self._places.append(Place(offset, segment_base, byte))
            self._bytes_since_entry = 0
        self._bytes_since_entry += size
        if max_time_ms > self.greatest_time_ms:
            self._note_time(max_time_ms)

    def _note_time(self, time_ms: int) -> None:
        self.greatest_time_ms = time_ms
        # A checkpoint that is being stored must not change: a later time gets an entry of its own.
        offset = max(self._offsets[-1] if self._offsets else 0, self._stored_below)
        if self._time_offsets and self._time_offsets[-1] == offset:
            self._times[-1] = time_ms
        else:
            self._times.append(time_ms)
            self._time_offsets.append(offset)

    def place_at_or_before(self, offset: int) -> Place | None:
        """The last entry at or before `offset`."""
        found = bisect_right(self._offsets, offset)
        if found:
            return self._places[found - 1]
        stored = self._store.floor("offset_index", self._identity, self._identity + _OFFSET.pack(offset))
        return decode_place(*stored) if stored else None

    def offset_before_time(self, time_ms: int) -> int | None:
        """An offset at or shortly before the first batch of this time or later; None if there is none."""
        if time_ms > self.greatest_time_ms:
            return None
        for _, value in self._store.scan("time_index", self._identity, time_key(self._identity, time_ms)):
            return int(_OFFSET.unpack(value)[0])
        return self._time_offsets[bisect_left(self._times, time_ms)]

    def checkpoint(self, below: int) -> list[Change]:
        """The changes that store the entries for offsets below `below`. Memory keeps them until `forget`."""
        self._stored_below = below
        changes: list[Change] = [
            Put(
                "offset_index",
                self._identity + _OFFSET.pack(place.offset),
                _PLACE.pack(place.segment_base, place.byte),
            )
            for place in self._places[: bisect_left(self._offsets, below)]
        ]
        changes += [
            Put(
                "time_index",
                time_key(self._identity, self._times[number]),
                _OFFSET.pack(self._time_offsets[number]),
            )
            for number in range(bisect_left(self._time_offsets, below))
        ]
        return changes

    def forget(self, below: int) -> None:
        """Drop from memory the entries that a checkpoint below this offset has stored."""
        count = bisect_left(self._offsets, below)
        del self._offsets[:count], self._places[:count]
        count = bisect_left(self._time_offsets, below)
        del self._times[:count], self._time_offsets[:count]

    def trim(self, start_offset: int) -> list[Change]:
        """The changes that drop entries of trimmed offsets. Times go a few thousand per call."""
        changes: list[Change] = [
            DeleteRange("offset_index", self._identity, self._identity + _OFFSET.pack(start_offset))
        ]
        for key, value in islice(self._store.scan("time_index", self._identity), TRIMMED_TIMES_MAX):
            if _OFFSET.unpack(value)[0] >= start_offset:
                break
            changes.append(Delete("time_index", key))
        return changes
