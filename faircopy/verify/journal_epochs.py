"""The check of the leader epochs that a journal's checkpoint has, against those of its entries (I6)."""

from __future__ import annotations

import contextlib

from faircopy.errors import DoesNotFold
from faircopy.journal.entry import Entry
from faircopy.journal.opening import epochs_with
from faircopy.storage.epoch_history import Epochs, EpochStart


class EpochsFound:
    """The epochs of the entries that a journal has from `start` on, as they are read in order."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._epochs = Epochs((EpochStart(0, start),))

    def note(self, entry: Entry) -> None:
        """Take one more entry, unless it is of an older epoch: a broker has passed over that one."""
        with contextlib.suppress(DoesNotFold):
            self._epochs = epochs_with(self._epochs, entry)

    def difference(self, stored: Epochs) -> str | None:
        """What is wrong with the epochs of a checkpoint that ends where the entries do. What comes before the
        first entry or before the first known epoch is not compared.
        """
        if not stored.starts:
            return None  # it is of a format that had none
        since = max(self._start, stored.starts[0].start)
        (expected, *later), (found, *found_later) = stored.trim(since).starts, self._epochs.trim(since).starts
        if expected.epoch == found.epoch and later == found_later:
            return None
        return (
            f"I6: the checkpoint has leader epochs {stored} by position, and the journal from {since} on has "
            f"{self._epochs}"
        )
