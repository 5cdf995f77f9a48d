"""Which leader epochs a partition has had, and at which offset each began. Pure.

Each batch of a log bears the epoch of the entry that decided it, and epochs never fall as offsets grow. So the offsets
at which epochs began tell the epoch of every batch, and where an epoch ends (KIP-101).

Where nothing is known, all is of epoch 0: so it is in directories that were written before there were epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from faircopy.errors import invariant

NO_EPOCH = -1
NO_OFFSET = -1
EPOCHS_END = 1 << 31
"""Greater than any epoch, which is an i32."""

_epoch_of = attrgetter("epoch")
_offset_of = attrgetter("offset")


class EpochStart(NamedTuple):
    """A leader epoch, and the offset of its first batch, or of the batch that it would write first."""

    epoch: int
    offset: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last batch. Both are -1 where that can't be told."""

    epoch: int
    end_offset: int


UNDEFINED = EpochEnd(NO_EPOCH, NO_OFFSET)


class Epochs(NamedTuple):
    """The history of one partition: epochs and offsets both grow, strictly. What came before the first is forgotten,
    unless it begins at offset 0.
    """

    starts: tuple[EpochStart, ...] = (EpochStart(0, 0),)

    def __str__(self) -> str:
        return ", ".join(f"{epoch} from offset {offset}" for epoch, offset in self.starts)

    @classmethod
    def of(cls, pairs: Iterable[Iterable[int]]) -> Epochs:
        """The history in these pairs of epoch and offset."""
        return cls(tuple(EpochStart(*pair) for pair in pairs))

    @property
    def newest(self) -> int:
        """The last epoch that began."""
        return self.starts[-1].epoch

    def note(self, epoch: int, next_offset: int) -> Epochs:
        """The history once `epoch` leads, and `next_offset` is the next to be written. An epoch that has written
        nothing leaves no trace when another follows it.
        """
        last = self.starts[-1]
        if epoch == last.epoch:
            return self
        invariant(epoch > last.epoch and next_offset >= last.offset, "leader epochs and offsets only grow")
        kept = self.starts[:-1] if next_offset == last.offset else self.starts
        return Epochs((*kept, EpochStart(epoch, next_offset)))

    def trim(self, start_offset: int) -> Epochs:
        """The history of a log that begins at `start_offset`: without epochs that had ended there."""
        gone = bisect_right(self.starts, start_offset, key=_offset_of) - 1
        return Epochs(self.starts[gone:]) if gone > 0 else self

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`; the first that is known if that is forgotten."""
        return self.starts[max(bisect_right(self.starts, offset, key=_offset_of) - 1, 0)].epoch

    def allowed_at(self, offset: int, floor: int = 0) -> range:
        """Which epochs a batch at `offset` may bear, if the one before it bears `floor`.

        It is one, but where the history is forgotten: there, epochs don't fall, and are below the first that is known.
        """
        first = self.starts[0]
        if offset < first.offset:
            return range(floor, first.epoch)
        epoch = self.epoch_at(offset)
        return range(epoch, epoch + 1)

    def end_of(self, asked: int, log_end_offset: int) -> EpochEnd:
        """Where epoch `asked` ended, if the newest one leads: what OffsetForLeaderEpoch tells (KIP-101, KIP-279).

        For one that wrote nothing, the last before it answers. One that is older than all that are known ended where
        the first of those began, or before.
        """
        if asked == self.newest:
            return EpochEnd(asked, log_end_offset)
        above = bisect_right(self.starts, asked, key=_epoch_of)
        if asked < 0 or above == len(self.starts):
            return UNDEFINED
        return EpochEnd(self.starts[above - 1].epoch if above else asked, self.starts[above].offset)


NOTHING_KNOWN = Epochs((EpochStart(EPOCHS_END, 1 << 63),))
"""Where a log is looked at without its history: all that can be said is that epochs never fall."""
