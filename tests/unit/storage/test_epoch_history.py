"""The history of leader epochs, against one epoch for each offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.errors import InvariantViolation
from faircopy.storage.epoch_history import NOTHING_KNOWN, UNDEFINED, EpochEnd, Epochs

# Leaders, one after the other: how much greater each one's epoch is, and how many offsets it writes.
leaders = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), max_size=8)


class Model:
    """Which epoch wrote each offset, and which one leads."""

    def __init__(self, written: list[tuple[int, int]]) -> None:
        self.current = 0
        self.of: list[int] = []
        self.epochs = Epochs()
        for step, count in written:
            self.current += step
            self.epochs = self.epochs.note(self.current, len(self.of))
            self.of += [self.current] * count

    @property
    def end_offset(self) -> int:
        return len(self.of)

    def epoch_at(self, offset: int) -> int:
        return self.of[offset] if offset < self.end_offset else self.current

    def end_of(self, asked: int) -> EpochEnd:
        """As Kafka puts it: the greatest epoch up to this one, and the first offset of a greater one."""
        if asked == self.current:
            return EpochEnd(asked, self.end_offset)
        if asked < 0 or asked > self.current:
            return UNDEFINED
        end_offset = next(offset for offset in range(self.end_offset + 1) if self.epoch_at(offset) > asked)
        return EpochEnd(self.of[end_offset - 1] if end_offset else asked, end_offset)


@given(leaders)
def test_each_offset_has_its_epoch(written: list[tuple[int, int]]) -> None:
    model = Model(written)
    assert model.epochs.newest == model.current
    for offset in range(model.end_offset + 2):
        assert model.epochs.epoch_at(offset) == model.epoch_at(offset)
        assert list(model.epochs.allowed_at(offset)) == [model.epoch_at(offset)]


@given(leaders, st.integers(-1, 30))
def test_where_an_epoch_ends(written: list[tuple[int, int]], asked: int) -> None:
    model = Model(written)
    assert model.epochs.end_of(asked, model.end_offset) == model.end_of(asked)


@given(leaders, st.integers(0, 30), st.integers(-1, 30))
def test_a_trimmed_history_is_the_same_from_the_start_on(
    written: list[tuple[int, int]], start_offset: int, asked: int
) -> None:
    model = Model(written)
    start_offset = min(start_offset, model.end_offset)
    trimmed = model.epochs.trim(start_offset)
    assert trimmed == trimmed.trim(start_offset) and trimmed.newest == model.current
    assert [start for start in trimmed.starts if start.start <= start_offset] == [trimmed.starts[0]]
    for offset in range(start_offset, model.end_offset + 1):
        assert trimmed.epoch_at(offset) == model.epoch_at(offset)
    for offset in range(trimmed.starts[0].start):
        floor = model.epoch_at(offset - 1) if offset else 0
        assert model.epoch_at(offset) in trimmed.allowed_at(offset, floor)
        assert trimmed.starts[0].epoch not in trimmed.allowed_at(offset, floor)
    found = trimmed.end_of(asked, model.end_offset)
    if found != UNDEFINED and found.epoch >= trimmed.starts[0].epoch:
        assert found == model.end_of(asked)
    elif found != UNDEFINED:
        assert found == EpochEnd(asked, trimmed.starts[0].start)


@given(leaders, st.integers(0, 30))
def test_the_history_is_trimmed_before_or_after_more_is_written(
    written: list[tuple[int, int]], start_offset: int
) -> None:
    """A checkpoint between the two changes nothing."""
    model = Model(written)
    start_offset = min(start_offset, model.end_offset)
    after = model.epochs.note(model.current + 1, model.end_offset).trim(start_offset)
    assert (
        model.epochs.trim(start_offset).note(model.current + 1, model.end_offset).trim(start_offset) == after
    )


def test_an_epoch_that_wrote_nothing_leaves_no_trace() -> None:
    epochs = Epochs().note(3, 10).note(4, 10).note(7, 12)
    assert epochs == Epochs.of([(0, 0), (4, 10), (7, 12)])
    assert epochs.end_of(3, 20) == EpochEnd(0, 10)
    assert epochs.end_of(5, 20) == EpochEnd(4, 12)
    assert epochs.end_of(8, 20) == UNDEFINED


def test_a_directory_that_knows_no_epochs_has_epoch_0() -> None:
    assert Epochs().epoch_at(1_000) == 0
    assert Epochs().end_of(0, 1_000) == EpochEnd(0, 1_000)
    assert Epochs().note(5, 1_000).end_of(0, 1_200) == EpochEnd(0, 1_000)


@pytest.mark.parametrize(("epoch", "offset"), [(4, 20), (6, 9)])
def test_neither_epochs_nor_offsets_fall(epoch: int, offset: int) -> None:
    with pytest.raises(InvariantViolation):
        Epochs().note(5, 10).note(epoch, offset)


def test_without_a_history_epochs_must_not_fall() -> None:
    assert 4 not in NOTHING_KNOWN.allowed_at(10, floor=5)
    assert {5, 2**31 - 1} <= set(NOTHING_KNOWN.allowed_at(10, floor=5)[:: 2**31 - 6])
    assert str(Epochs().note(5, 10)) == "0 from 0, 5 from 10"
