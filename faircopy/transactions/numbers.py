"""Numbers that are never given out twice, although a crash forgets which were: each begins with the epoch of
the leader or process that gives it out.

Pure.
"""

from __future__ import annotations

from faircopy.errors import FaircopyError

NUMBERS_OF_AN_EPOCH = 1 << 40
EPOCHS_MAX = 1 << 23
"""So that all numbers have 63 bits."""


class NumbersUsedUp(FaircopyError):
    """An epoch has no more numbers; the next epoch would give the following ones out again."""


def first_number(epoch: int) -> int:
    """The first number of an epoch: those of earlier epochs are lower."""
    return epoch * NUMBERS_OF_AN_EPOCH


class Numbers:
    """The numbers of one epoch, in growing order (I4)."""

    def __init__(self, epoch: int) -> None:
        if epoch >= EPOCHS_MAX:
            raise NumbersUsedUp(f"epoch {epoch} is too large: there are {EPOCHS_MAX}")
        self._next = first_number(epoch)
        self._end = self._next + NUMBERS_OF_AN_EPOCH

    def take(self) -> int:
        """The next number. Raises NumbersUsedUp."""
        number = self._next
        if number == self._end:
            raise NumbersUsedUp(
                "all numbers of this epoch are used up: restart the broker to begin another epoch"
            )
        self._next = number + 1
        return number
