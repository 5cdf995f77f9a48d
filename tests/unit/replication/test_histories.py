"""Histories of leader epochs are compared as if position by position, where both are known."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from faircopy.replication.histories import UNKNOWN_EPOCH, ends_of, first_difference
from faircopy.replication.messages import ComparedJournal, EndOfEpoch
from faircopy.storage.epoch_history import NO_EPOCHS, UNKNOWN_EPOCHS, Epochs, EpochStart

END_MAX = 12
IDENTITY = bytes(20)


@st.composite
def histories(draw: st.DrawFn, begun: Epochs = UNKNOWN_EPOCHS) -> Epochs:
    """What a journal may know of its leaders: from any position on, or after what has begun."""
    starts = list(begun.starts)
    for later, further in draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=3)):
        last = starts[-1] if starts else EpochStart(9, -1)
        starts.append(EpochStart(last.epoch + later, last.start + further))
    return Epochs(tuple(starts))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Epochs, Epochs]:
    """What two journals know that began as one."""
    begun = draw(histories())
    mine, leaders = draw(histories(begun)), draw(histories(begun))
    forgotten = st.just(0) | places
    return mine.trim(draw(forgotten)), leaders.trim(draw(forgotten))


places = st.integers(0, END_MAX)
ordered = st.tuples(places, places).map(sorted)


def compared(epochs: Epochs, start: int, end: int) -> ComparedJournal:
    return ComparedJournal(IDENTITY, start, end, ends_of(epochs, start, end))


@given(pairs(), ordered, places)
def test_as_if_position_by_position(both: tuple[Epochs, Epochs], between: list[int], end: int) -> None:
    mine, leaders = both
    start, leaders_end = between
    is_known = bool(mine.starts and leaders.starts)
    known_from = max(start, mine.starts[0].start, leaders.starts[0].start) if is_known else end
    known = range(known_from, min(end, leaders_end))
    differing = [
        place for place in known
        if mine.epoch_at(place) != leaders.epoch_at(place) != UNKNOWN_EPOCH
    ]  # fmt: skip
    expected = differing[0] if differing else None
    assert first_difference(mine, compared(leaders, start, leaders_end), end) == expected


@given(histories(), ordered, st.sets(st.integers(0, 9)), st.sets(st.integers(41, 43)))
def test_epochs_without_entries_say_nothing(
    epochs: Epochs, between: list[int], before: set[int], after: set[int]
) -> None:
    """A leader may name them, and those that ended before its journal begins."""
    start, end = between
    there = compared(epochs, start, end)
    if there.epochs:
        earlier = [EndOfEpoch(each, start * each // 9) for each in sorted(before)]
        later = [EndOfEpoch(each, end) for each in sorted(after)]
        there = there._replace(epochs=(*earlier, *there.epochs, *later))
    assert first_difference(epochs, there, END_MAX) is None


ONE, TWO, OTHER = Epochs.of([(3, 0)]), Epochs.of([(3, 0), (7, 5)]), Epochs.of([(3, 0), (6, 5)])


@pytest.mark.parametrize(
    ("mine", "leaders", "end", "expected"),
    [
        (TWO, ONE, 12, 5),
        (ONE, TWO, 12, 5),
        (TWO, OTHER, 12, 5),
        (TWO, ONE, 5, None),
        (ONE, TWO, 5, None),
        (TWO.trim(5), ONE, 12, 5),
    ],
)
def test_the_first_difference(mine: Epochs, leaders: Epochs, end: int, expected: int | None) -> None:
    assert first_difference(mine, compared(leaders, 0, 12), end) == expected


def test_epochs_that_ended_before_the_journal_begins_say_nothing() -> None:
    there = ComparedJournal(IDENTITY, 5, 12, (EndOfEpoch(3, 2), EndOfEpoch(7, 12)))
    assert first_difference(Epochs.of([(3, 0), (7, 2)]), there, 12) is None
    assert first_difference(Epochs.of([(3, 0), (8, 2)]), there, 12) == 5


def test_epochs_end_where_others_begin() -> None:
    epochs = Epochs.of([(0, 0), (3, 4), (7, 9)])
    assert ends_of(epochs, 0, 12) == (EndOfEpoch(0, 4), EndOfEpoch(3, 9), EndOfEpoch(7, 12))
    assert ends_of(epochs, 5, 9) == (EndOfEpoch(3, 9),)
    assert ends_of(epochs, 0, 9) == (EndOfEpoch(0, 4), EndOfEpoch(3, 9))
    assert ends_of(NO_EPOCHS, 0, 0) == ()


def test_epochs_that_nobody_knows_any_more_are_said_to_be_unknown() -> None:
    assert ends_of(UNKNOWN_EPOCHS, 3, 12) == (EndOfEpoch(UNKNOWN_EPOCH, 12),)
    assert ends_of(Epochs.of([(3, 4)]), 3, 12) == (EndOfEpoch(UNKNOWN_EPOCH, 4), EndOfEpoch(3, 12))
    assert ends_of(Epochs.of([(3, 20)]), 3, 12) == (EndOfEpoch(UNKNOWN_EPOCH, 12),)
