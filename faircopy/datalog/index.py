"""The sparse index of a data log: from an offset, or a time, to a place in a segment file.

It divides the log into *stretches* of about 64 KiB, which begin with a batch. For each it has where it
begins, and the latest time of its messages. Stretches made since the last checkpoint are in memory only; a
checkpoint moves them to LMDB, together with the rest of what it stores (I6).

    offset_index  identity, offset u64 -> segment base offset u64, byte u64, latest time i64 in milliseconds

The identity has 20 bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from faircopy.storage.state_store import Change, DeleteRange, Put, StateStore

TABLE = "offset_index"
INTERVAL_BYTES = 64 << 10
_OFFSET = struct.Struct(">Q")
_STRETCH = struct.Struct(">QQq")


class Place(NamedTuple):
    """Where a batch starts."""

    offset: int
    segment_base: int
    byte: int


class Stretch(NamedTuple):
    """A part of a segment: where it starts, and a time that none of its messages is later than."""

    place: Place
    latest_ms: int


def decode_stretch(key: bytes, value: bytes) -> Stretch:
    """The stretch in a record of the index."""
    segment_base, byte, latest_ms = _STRETCH.unpack(value)
    return Stretch(Place(_OFFSET.unpack(key[-8:])[0], segment_base, byte), latest_ms)


class SparseIndex:
    """The index of one data log."""

    def __init__(self, identity: bytes, store: StateStore) -> None:
        self._identity = identity
        self._store = store
        self._offsets: list[int] = []
        self._places: list[Place] = []
        self._latest_ms: list[int] = []
        self._stretch_bytes = INTERVAL_BYTES

    def add(self, offset: int, segment_base: int, byte: int, size: int, latest_ms: int) -> None:
        """Note a batch. Most batches begin no stretch; the first batch of each segment always does."""
        if self._stretch_bytes >= INTERVAL_BYTES or byte == 0:
            self._offsets.append(offset)
            self._places.append(Place(offset, segment_base, byte))
            self._latest_ms.append(latest_ms)
            self._stretch_bytes = 0
        elif latest_ms > self._latest_ms[-1]:
            self._latest_ms[-1] = latest_ms
        self._stretch_bytes += size

    def place_at_or_before(self, offset: int) -> Place | None:
        """The last start of a stretch at or before `offset`."""
        found = bisect_right(self._offsets, offset)
        if found:
            return self._places[found - 1]
        stored = self._store.floor(TABLE, self._identity, self._key(offset))
        return decode_stretch(*stored).place if stored else None

    def in_memory(self, segment_base: int) -> list[Stretch]:
        """The newest stretches of a segment: those that are in memory."""
        first = bisect_left(self._offsets, segment_base)
        stretches = map(Stretch, self._places[first:], self._latest_ms[first:])
        return [stretch for stretch in stretches if stretch.place.segment_base == segment_base]

    def in_store(self, segment_base: int) -> Iterator[Stretch]:
        """The stretches of a segment that are in the store. On any thread."""
        for key, value in self._store.scan(TABLE, self._identity, self._key(segment_base)):
            stretch = decode_stretch(key, value)
            if stretch.place.segment_base != segment_base:
                return
            yield stretch

    def checkpoint(self, below: int) -> list[Change]:
        """The changes that store the stretches that begin below `below`, the end of the log. Memory keeps
        them until `forget`.
        """
        # What is being stored must not change: the next batch begins a new stretch.
        self._stretch_bytes = INTERVAL_BYTES
        return [
            Put(TABLE, self._key(place.offset), _STRETCH.pack(place.segment_base, place.byte, latest_ms))
            for place, latest_ms in zip(self._places, self._latest_ms, strict=True)
            if place.offset < below
        ]

    def forget(self, below: int) -> None:
        """Drop from memory the stretches that a checkpoint below this offset has stored."""
        count = bisect_left(self._offsets, below)
        del self._offsets[:count], self._places[:count], self._latest_ms[:count]

    def trim(self, start_offset: int) -> Change:
        """The change that drops the stretches of trimmed offsets."""
        return DeleteRange(TABLE, self._identity, self._key(start_offset))

    def _key(self, offset: int) -> bytes:
        return self._identity + _OFFSET.pack(offset)
