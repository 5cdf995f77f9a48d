"""Which bytes of a log segment need no check before they are served. Pure.

Bytes that this process wrote need none. Older bytes are checked once, a piece at a time, when they are first
read: disks lose data, and a broker must serve exactly what it was given.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class CheckedRange(NamedTuple):
    """Whole batches that were checked, and the offset that follows them."""

    begin: int
    end: int
    end_offset: int


class CheckedBytes:
    """The checked bytes of one segment. Threads may share it: a range that one loses is checked again."""

    __slots__ = ("_ranges", "old_bytes")

    def __init__(self, old_bytes: int) -> None:
        """The first `old_bytes` of the file were there when the process started."""
        self.old_bytes = old_bytes
        self._ranges: tuple[CheckedRange, ...] = ()

    def covers(self, begin: int, end: int) -> bool:
        """Whether all bytes from `begin` up to, not including, `end` may be served."""
        if begin >= self.old_bytes:
            return True
        known = self.range_at(begin)
        return known is not None and known.end >= min(end, self.old_bytes)

    def range_at(self, byte: int) -> CheckedRange | None:
        """The checked range that holds an old byte; None if there is none."""
        ranges = self._ranges
        number = bisect_right(ranges, byte, key=lambda known: known.begin) - 1
        return ranges[number] if number >= 0 and byte < ranges[number].end else None

    def add(self, checked: CheckedRange) -> None:
        """Note a checked range. Ranges that touch are merged."""
        apart = [known for known in self._ranges if known.end < checked.begin or known.begin > checked.end]
        touching = [known for known in self._ranges if known not in apart]
        last = max([*touching, checked], key=lambda known: known.end)
        begin = min(known.begin for known in (*touching, checked))
        self._ranges = tuple(sorted([*apart, CheckedRange(begin, last.end, last.end_offset)]))
