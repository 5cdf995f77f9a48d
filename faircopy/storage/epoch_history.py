"""The leader epochs that a stream has had, and where each began in it. Pure.

A stream is a journal, whose places are positions, or a data log, whose places are offsets. Each entry of a
journal carries the epoch of the leader that wrote it, and each batch of a log that of the entry that decided
it; neither ever falls. So the places at which epochs began give the epoch of everything in the stream, and
the end of every epoch (KIP-101).

Before the first leader, the epoch is 0.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from faircopy.errors import invariant

NO_EPOCH = -1
NOWHERE = -1
EPOCHS_END = 1 << 31
"""Greater than any epoch, which is an i32."""

_epoch_of = attrgetter("epoch")
_start_of = attrgetter("start")


class EpochStart(NamedTuple):
    """A leader epoch, and the place of the first thing that it wrote, or would write."""

    epoch: int
    start: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the place after the last thing that it wrote. Both are -1 if that is unknown."""

    epoch: int
    end: int


UNDEFINED = EpochEnd(NO_EPOCH, NOWHERE)


class Epochs(NamedTuple):
    """The history of one stream. Epochs and their starts are both strictly increasing. What comes before the
    first start is forgotten.
    """

    starts: tuple[EpochStart, ...] = (EpochStart(0, 0),)

    def __str__(self) -> str:
        return ", ".join(f"{epoch} from {start}" for epoch, start in self.starts)

    @classmethod
    def of(cls, pairs: Iterable[Iterable[int]]) -> Epochs:
        """The history given by these pairs of an epoch and its start."""
        return cls(tuple(EpochStart(*pair) for pair in pairs))

    @property
    def newest(self) -> int:
        """The last epoch that began; 0 if none is known."""
        return self.starts[-1].epoch if self.starts else 0

    def note(self, epoch: int, end: int) -> Epochs:
        """The history once `epoch` leads, in a stream that ends at `end`. An epoch that wrote nothing leaves
        no trace once another follows it.
        """
        if epoch == self.newest:
            return self
        last = self.starts[-1] if self.starts else EpochStart(0, 0)
        invariant(epoch > last.epoch and end >= last.start, "leader epochs and their starts only grow")
        kept = self.starts[:-1] if end == last.start else self.starts
        return Epochs((*kept, EpochStart(epoch, end)))

    def trim(self, start: int) -> Epochs:
        """The history of a stream that begins at `start`, without the epochs that had ended by then."""
        gone = bisect_right(self.starts, start, key=_start_of) - 1
        return Epochs(self.starts[gone:]) if gone > 0 else self

    def cut(self, end: int) -> Epochs:
        """The history of the stream as it was when it ended at `end`: without the epochs that began there or
        later, except for the first that is known.
        """
        kept = max(bisect_left(self.starts, end, key=_start_of), 1)
        return Epochs(self.starts[:kept]) if kept < len(self.starts) else self

    def epoch_at(self, place: int) -> int:
        """The epoch that wrote what is at `place`, or the first known epoch if that one is forgotten."""
        return self.starts[max(bisect_right(self.starts, place, key=_start_of) - 1, 0)].epoch

    def allowed_at(self, place: int, floor: int = 0) -> range:
        """The epochs that what is at `place` may carry, if what comes before it carries `floor`.

        Usually that is one epoch. Where the history is forgotten, it is any epoch from `floor` on that is
        below the first known one.
        """
        first = self.starts[0]
        if place < first.start:
            return range(floor, first.epoch)
        epoch = self.epoch_at(place)
        return range(epoch, epoch + 1)

    def end_of(self, asked: int, end: int) -> EpochEnd:
        """Where epoch `asked` ended in a stream that ends at `end`, if the newest epoch leads: the answer to
        OffsetForLeaderEpoch (KIP-101, KIP-279).

        For an epoch that wrote nothing, the answer is the last one before it. An epoch older than all known
        ones ended where the first known one began, or before.
        """
        if asked == self.newest:
            return EpochEnd(asked, end)
        above = bisect_right(self.starts, asked, key=_epoch_of)
        if asked < 0 or above == len(self.starts):
            return UNDEFINED
        return EpochEnd(self.starts[above - 1].epoch if above else asked, self.starts[above].start)


NO_EPOCHS = Epochs()
"""The history of a stream that is new, or has no leaders."""
UNKNOWN_EPOCHS = Epochs(())
"""The history of a stream whose leaders so far were not noted; those to come can be."""
NOTHING_KNOWN = Epochs((EpochStart(EPOCHS_END, 1 << 63),))
"""For a stream that is read without its history: all that is known is that epochs never fall."""
