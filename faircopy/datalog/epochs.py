"""The leader epochs that a partition has had, and the offset at which each began. Pure.

Each batch of a log carries the epoch of the entry that decided it, and epochs never fall as offsets grow. So
the offsets at which epochs began give the epoch of every batch, and the end of every epoch (KIP-101).

Before the first leader, the epoch is 0.
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
    """A leader epoch, and the offset of its first batch, or of the first batch that it would write."""

    epoch: int
    offset: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last batch. Both are -1 if that is unknown."""

    epoch: int
    end_offset: int


UNDEFINED = EpochEnd(NO_EPOCH, NO_OFFSET)


class Epochs(NamedTuple):
    """The history of one partition. Epochs and offsets are both strictly increasing. If the first start is
    above offset 0, earlier epochs are forgotten.
    """

    starts: tuple[EpochStart, ...] = (EpochStart(0, 0),)

    def __str__(self) -> str:
        return ", ".join(f"{epoch} from offset {offset}" for epoch, offset in self.starts)

    @classmethod
    def of(cls, pairs: Iterable[Iterable[int]]) -> Epochs:
        """The history given by these pairs of epoch and offset."""
        return cls(tuple(EpochStart(*pair) for pair in pairs))

    @property
    def newest(self) -> int:
        """The last epoch that began."""
        return self.starts[-1].epoch

    def note(self, epoch: int, next_offset: int) -> Epochs:
        """The history once `epoch` leads, with `next_offset` the next to be written. An epoch that wrote
        nothing leaves no trace once another follows it.
        """
        last = self.starts[-1]
        if epoch == last.epoch:
            return self
        invariant(epoch > last.epoch and next_offset >= last.offset, "leader epochs and offsets only grow")
        kept = self.starts[:-1] if next_offset == last.offset else self.starts
        return Epochs((*kept, EpochStart(epoch, next_offset)))

    def trim(self, start_offset: int) -> Epochs:
        """The history of a log that starts at `start_offset`, without the epochs that had ended by then."""
        gone = bisect_right(self.starts, start_offset, key=_offset_of) - 1
        return Epochs(self.starts[gone:]) if gone > 0 else self

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`, or the first known epoch if that one is forgotten."""
        return self.starts[max(bisect_right(self.starts, offset, key=_offset_of) - 1, 0)].epoch

    def allowed_at(self, offset: int, floor: int = 0) -> range:
        """The epochs that a batch at `offset` may carry, if the one before it carries `floor`.

        Usually that is one epoch. Where the history is forgotten, it is any epoch from `floor` on that is
        below the first known one.
        """
        first = self.starts[0]
        if offset < first.offset:
            return range(floor, first.epoch)
        epoch = self.epoch_at(offset)
        return range(epoch, epoch + 1)

    def end_of(self, asked: int, log_end_offset: int) -> EpochEnd:
        """Where epoch `asked` ended, if the newest one leads: the answer to OffsetForLeaderEpoch (KIP-101,
        KIP-279).

        For an epoch that wrote nothing, the answer is the last one before it. An epoch older than all known
        ones ended where the first known one began, or before.
        """
        if asked == self.newest:
            return EpochEnd(asked, log_end_offset)
        above = bisect_right(self.starts, asked, key=_epoch_of)
        if asked < 0 or above == len(self.starts):
            return UNDEFINED
        return EpochEnd(self.starts[above - 1].epoch if above else asked, self.starts[above].offset)


NOTHING_KNOWN = Epochs((EpochStart(EPOCHS_END, 1 << 63),))
"""For a log that is read without its history: all that is known is that epochs never fall."""
