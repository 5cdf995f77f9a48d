"""Whether two replicas of a journal can have the same entries, by the leader epochs that wrote them.

Entries of one epoch were written by one leader, in one life. So where two journals have entries of the same
epochs at the same positions, they have the same entries.

Pure.
"""

from __future__ import annotations

from faircopy.replication.messages import ComparedJournal, EndOfEpoch
from faircopy.storage.epoch_history import Epochs, EpochStart

UNKNOWN_EPOCH = 0
"""In COMPARE, the epoch of entries whose leader nobody knows any more. No leader has it."""


def ends_of(epochs: Epochs, start: int, end: int) -> tuple[EndOfEpoch, ...]:
    """The epochs of the entries between two positions, as COMPARE says them: the first begins at `start`."""
    if start == end:
        return ()
    known = [each for each in epochs.trim(start).starts if each.start < end]
    if not known or known[0].start > start:
        known.insert(0, EpochStart(UNKNOWN_EPOCH, start))
    ends = [each.start for each in known[1:]] + [end]
    return tuple(EndOfEpoch(each.epoch, its_end) for each, its_end in zip(known, ends, strict=True))


def first_difference(mine: Epochs, leaders: ComparedJournal, end: int) -> int | None:
    """The first position below `end` at which the leader's journal has another epoch than mine, where the
    epochs of both are known; None if there is none.
    """
    theirs = _history(leaders)
    if not mine.starts or not theirs.starts:
        return None
    known_from = max(mine.starts[0].start, theirs.starts[0].start)
    known_up_to = min(end, leaders.epochs[-1].end)
    places = {known_from} | {each.start for history in (mine, theirs) for each in history.starts}
    known = (place for place in sorted(places) if known_from <= place < known_up_to)
    return next((place for place in known if mine.epoch_at(place) != theirs.epoch_at(place)), None)


def _history(leaders: ComparedJournal) -> Epochs:
    """The epochs of a compared journal by their starts, without those that have no entries there, or are
    unknown.
    """
    starts, at = [], leaders.start
    for epoch, end in leaders.epochs:
        if end > at:
            if epoch != UNKNOWN_EPOCH:
                starts.append(EpochStart(epoch, at))
            at = end
    return Epochs(tuple(starts))
