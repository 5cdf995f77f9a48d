"""Numbers that are never given twice, although a crash forgets which were: each begins with the epoch of its giver.

Pure.
"""

from __future__ import annotations

from faircopy.errors import FaircopyError

NUMBERS_OF_AN_EPOCH = 1 << 40
EPOCHS_MAX = 1 << 23
"""So that all numbers have 63 bits."""


class NumbersUsedUp(FaircopyError):
    """An epoch has no more numbers; those of the next one would be given twice."""


class Numbers:
    """The numbers of one epoch, in growing order (I4)."""

    def __init__(self, epoch: int) -> None:
        if epoch >= EPOCHS_MAX:
            raise NumbersUsedUp(f"epoch {epoch} is too great: there are {EPOCHS_MAX}")
        self._next = epoch * NUMBERS_OF_AN_EPOCH
        self._end = self._next + NUMBERS_OF_AN_EPOCH

    def take(self) -> int:
        """The next number. Raises NumbersUsedUp."""
        number = self._next
        if number == self._end:
            raise NumbersUsedUp("all numbers of this epoch are used up: restart the broker, which begins another one")
        self._next = number + 1
        return number
