"""Decisions made out of the bytes of an input, so that a change of a byte is a change of one decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Option = TypeVar("Option")


class Choices:
    """Takes decisions off the front of an input; once that is used up, each is the first or the least."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        """Whether the input is used up."""
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Up to `size` bytes as they are."""
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data))

    def number(self, size: int = 1) -> int:
        """An unsigned integer of `size` bytes, big-endian."""
        return int.from_bytes(self.take(size), "big")

    def signed(self, size: int) -> int:
        """A signed integer of `size` bytes, big-endian."""
        return int.from_bytes(self.take(size).rjust(size, b"\0"), "big", signed=True)

    def up_to(self, most: int) -> int:
        """A number from 0 to `most`, of three bytes."""
        return self.number(3) % (most + 1)

    def one_of(self, options: Sequence[Option]) -> Option:
        """One of at most 256 options."""
        return options[self.number() % len(options)]

    def some(self) -> bytes:
        """Some bytes: how many, less than 64 Ki, stands before them."""
        return self.take(self.number(2))
