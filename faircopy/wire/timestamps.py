"""The timestamps of a batch's records against its header, which claims the greatest of them.

Nearly all clients tell the truth, so a `TimestampClaim` is checked without decoding: the timestamp deltas of
many records are compared at once. A false claim is found out, and a `TimestampRange` decodes them all.

Deltas are zigzag varints. They come column by column: the first byte of each, then the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from faircopy.wire.batch import BatchHeader, InvalidTimestamp

VARINT_BYTES_MAX = 10
_INT64 = range(-(1 << 63), 1 << 63)
_UP_TO = [bytes(range(number + 1)) for number in range(128)]
_EVEN = bytes(range(0, 256, 2))
_ODD = bytes(range(1, 256, 2))  # in zigzag: before the base timestamp

Column = Callable[[int], bytes]
"""Returns one byte of each delta, by its number. What lies after the end of a delta may be anything."""


class TimeRange(NamedTuple):
    """The least and the greatest time of a batch's records, in milliseconds."""

    least_ms: int
    greatest_ms: int


class Timestamps(Protocol):
    """What takes the timestamp deltas that a count of records passes."""

    def add(self, column: Column, count: int) -> None:
        """Take the next `count` deltas."""


class TimestampClaim:
    """The claim of a header: a record has its greatest timestamp, and none a later one.

    The deltas stand in one large integer, each in a lane of a few bytes, with seven of its bits in each byte.
    So one operation handles all of them, and their lanes compare as they do.
    """

    def __init__(self, header: BatchHeader) -> None:
        self._claimed = TimeRange(header.base_timestamp_ms, header.max_timestamp_ms)
        claimed = 2 * (header.max_timestamp_ms - header.base_timestamp_ms)  # zigzag
        self._lane_bytes = 4 if claimed < 1 << 28 else 8
        self._lane = claimed if 0 <= claimed < 128 else _lane_of(claimed, self._lane_bytes)
        self._is_false = not 0 <= claimed < 1 << 56
        self._is_seen = False
        self._has_base = False
        self._has_earlier = False

    def borne_out(self, needs_least: bool) -> TimeRange | None:
        """The range of the times, if the header is right about it. The least one is that of the header, too;
        None if `needs_least` and no record has it, or some are earlier.
        """
        is_least = self._has_base and not self._has_earlier
        is_true = self._is_seen and not self._is_false and (is_least or not needs_least)
        return self._claimed if is_true else None

    def add(self, column: Column, count: int) -> None:
        """Take the next `count` deltas."""
        first = column(0)
        self._has_base = self._has_base or 0 in first
        self._has_earlier |= bool(first.translate(None, _EVEN))
        if not first.isascii():
            self._compare(column, first, count)
        elif self._lane < 128:
            self._is_false |= bool(first.translate(None, _UP_TO[self._lane]).translate(None, _ODD))
            self._is_seen |= self._lane in first

    def _compare(self, column: Column, first: bytes, count: int) -> None:
        lanes = _lanes(column, first, count, self._lane_bytes)
        if lanes is None:
            self._is_false = True  # or a very early time: the range will tell
            return
        ones = int.from_bytes((1).to_bytes(self._lane_bytes, "little") * count, "little")
        tops = ones << 8 * self._lane_bytes - 1
        claimed = self._lane * ones
        odd = lanes & ones
        if odd:
            lanes &= ~(odd * ((1 << 8 * self._lane_bytes) - 1))
        self._is_false |= (claimed | tops) - lanes & tops != tops
        # An odd lane is empty by now: a claim of zero is not its own.
        equal = ~(((claimed ^ lanes) | tops) - ones) & tops & ~(odd << 8 * self._lane_bytes - 1)
        self._is_seen |= equal != 0


def _lane_of(number: int, lane_bytes: int) -> int:
    """The number with seven of its bits in each byte."""
    return sum((number >> 7 * byte & 127) << 8 * byte for byte in range(lane_bytes))


def _lanes(column: Column, first: bytes, count: int, lane_bytes: int) -> int | None:
    """The deltas in lanes; None if one takes more bytes."""
    ones = int.from_bytes(b"\1" * count, "little")
    lanes = bytearray(lane_bytes * count)
    taken = int.from_bytes(first, "little")
    for byte in range(lane_bytes):
        lanes[byte::lane_bytes] = (taken & 127 * ones).to_bytes(count, "little")
        going_on = taken >> 7 & ones
        if not going_on:
            return int.from_bytes(lanes, "little")
        taken = int.from_bytes(column(byte + 1), "little") & 255 * going_on
    return None


class TimestampRange:
    """The range of the times of a batch's records: each is decoded."""

    def __init__(self, header: BatchHeader) -> None:
        self._base_ms = header.base_timestamp_ms
        self._extremes: list[int] = []

    @property
    def range(self) -> TimeRange:
        """The range of the times so far."""
        return TimeRange(self._base_ms + min(self._extremes), self._base_ms + max(self._extremes))

    def add(self, column: Column, count: int) -> None:
        """Take the next `count` deltas. Raises InvalidTimestamp for a time of more than 64 bits."""
        columns = (column(byte) for byte in range(VARINT_BYTES_MAX))
        deltas = [_decoded(delta) for delta in zip(*columns, strict=True)]
        self._extremes = [min(self._extremes + deltas), max(self._extremes + deltas)]
        if not all(time_ms in _INT64 for time_ms in self.range):
            raise InvalidTimestamp("a record of the batch has a timestamp of more than 64 bits")


def _decoded(delta: tuple[int, ...]) -> int:
    """The signed number of a zigzag varint."""
    value = 0
    for number, byte in enumerate(delta):
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return (value >> 1) ^ -(value & 1)
    raise InvalidTimestamp(f"the timestamp of a record of the batch takes more than {VARINT_BYTES_MAX} bytes")
