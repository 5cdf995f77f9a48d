"""The body of one message, read field by field. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from faircopy.replication.frames import BadMessage

COUNT = Struct("<I")


class Body:
    """What is not read yet of a message's bytes."""

    __slots__ = ("_rest",)

    def __init__(self, content: bytes | memoryview) -> None:
        self._rest = memoryview(content)

    def fields(self, layout: Struct) -> tuple[Any, ...]:
        """The next fields. Raises BadMessage if the message ends before they do."""
        return layout.unpack(self._take(layout.size))

    def flag(self, layout: Struct) -> bool:
        """The next field, which is 0 or 1. Raises BadMessage."""
        (flag,) = self.fields(layout)
        if flag > 1:
            raise BadMessage(f"its flags are {flag:#x}: only 1 is known")
        return bool(flag)

    def count(self, row_bytes: int) -> int:
        """How many rows follow, of at least `row_bytes` each. Raises BadMessage if they can't be there."""
        (count,) = self.fields(COUNT)
        if count * row_bytes > len(self._rest):
            raise BadMessage(f"it announces {count} rows, and has {len(self._rest)} more bytes")
        return int(count)

    def rows(self, layout: Struct) -> Iterator[tuple[Any, ...]]:
        """A count, then so many rows of the same fields. Raises BadMessage."""
        return layout.iter_unpack(self._take(self.count(layout.size) * layout.size))

    def rest(self) -> memoryview:
        """All that is left, not copied."""
        return self._take(len(self._rest))

    def ensure_is_over(self) -> None:
        """Raise BadMessage if anything is left."""
        if len(self._rest):
            raise BadMessage(f"it has {len(self._rest)} bytes too many")

    def _take(self, size: int) -> memoryview:
        if size > len(self._rest):
            raise BadMessage(f"it is cut short: {size} bytes should follow, {len(self._rest)} do")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
