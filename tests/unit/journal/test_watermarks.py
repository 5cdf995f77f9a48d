"""The positions of a journal: their order, whatever happens in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.errors import InvariantViolation
from faircopy.journal.watermarks import EVERYWHERE, Watermarks
from tests.many import many

STEPS = many(st.tuples(st.sampled_from(["append", "write", "sync", "replicate"]), st.integers(0, 100)), 40)
FAR = EVERYWHERE, EVERYWHERE


def positions(marks: Watermarks) -> tuple[int, int, int, int, int]:
    return marks.appended, marks.written, marks.synced, marks.kept, marks.durable


@given(STEPS, st.booleans(), st.integers(0, 1 << 40), st.sampled_from([0, 50, EVERYWHERE]))
def test_the_order_always_holds(
    steps: list[tuple[str, int]], is_synced_first: bool, start: int, replicated: int
) -> None:
    marks = Watermarks(is_synced_first=is_synced_first, replicated=replicated)
    marks.start_at(start)
    assert marks.durable == marks.kept == min(start, replicated)
    for step, number in steps:
        before = positions(marks)
        if step == "append":
            marks.appended += number
        elif step == "write":
            marks.note_written(min(marks.written + number, marks.appended))
        elif step == "replicate":
            marks.note_replicated(marks.durable + number - 50, marks.kept + 50 - number)
        else:
            marks.note_synced(max(marks.written - number, 0))
        assert all(new >= old for new, old in zip(positions(marks), before, strict=True))
        assert marks.appended >= marks.written >= marks.synced >= start
        assert marks.durable == min(marks.synced if is_synced_first else marks.written, marks.replicated)
        assert marks.kept == min(marks.written, marks.replicated_drafts)


def test_syncs_may_end_in_any_order() -> None:
    marks = Watermarks(is_synced_first=True)
    marks.appended += 300
    marks.note_written(300)
    marks.note_synced(200)
    marks.note_synced(100)
    assert marks.synced == marks.durable == 200


@pytest.mark.parametrize("is_synced_first", [False, True])
def test_nothing_is_written_or_synced_that_was_not_before(is_synced_first: bool) -> None:
    marks = Watermarks(is_synced_first=is_synced_first)
    marks.appended += 100
    with pytest.raises(InvariantViolation):
        marks.note_written(101)
    marks.note_written(60)
    with pytest.raises(InvariantViolation):
        marks.note_written(59)
    with pytest.raises(InvariantViolation):
        marks.note_synced(61)
    assert positions(marks) == (100, 60, 0, 60, 0 if is_synced_first else 60)


def test_replicas_that_lack_it_take_back_nothing_that_is_durable() -> None:
    marks = Watermarks(is_synced_first=False, replicated=0)
    marks.appended += 100
    marks.note_written(100)
    assert marks.durable == 0
    marks.note_replicated(60, 0)
    marks.note_replicated(*FAR)
    assert marks.durable == 100
    marks.note_replicated(0, 0)
    assert (marks.durable, marks.replicated) == (100, 100)
    marks.appended += 100
    marks.note_written(200)
    assert marks.durable == 100
    marks.note_replicated(150, 0)
    assert marks.durable == 150


def test_drafts_are_kept_as_far_as_those_replicas_go_that_have_them_all() -> None:
    """Which may be further than what is durable, or less far; nothing that was kept is taken back."""
    marks = Watermarks(is_synced_first=True, replicated=0)
    marks.appended += 100
    marks.note_replicated(0, 40)
    assert marks.kept == 0, "it is not written here yet"
    marks.note_written(100)
    assert (marks.kept, marks.durable) == (40, 0)
    marks.note_replicated(100, 20)
    assert marks.kept == 40
    marks.note_replicated(100, 90)
    assert (marks.kept, marks.durable) == (90, 0)
    marks.note_replicated(0, 0)
    marks.appended += 100
    marks.note_written(200)
    assert marks.kept == 90


def test_on_one_broker_what_is_written_is_kept() -> None:
    marks = Watermarks(is_synced_first=True)
    marks.appended += 100
    marks.note_written(100)
    assert (marks.kept, marks.durable) == (100, 0)
