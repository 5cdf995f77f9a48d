"""The segments of a journal as a sequence: which one holds a position; adding, cutting, reclaiming them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.journal.errors import DamagedJournal
from faircopy.journal.segment import HEADER_BYTES, Segment
from faircopy.journal.segments import Segments
from faircopy.storage.file import File

IDENTITY = bytes(range(20))
SEGMENT_BYTES = 4096
LENGTHS = st.lists(st.integers(64, 6000), min_size=1, max_size=12)


def filled(directory: Path, lengths: list[int]) -> tuple[Segments, list[int]]:
    """Segments on disk with entries of these lengths, all of ones, and the position at which each ends."""
    segments, position, ends = Segments(directory), 0, []
    segments.open(IDENTITY)
    for length in lengths:
        segment = segments.for_append(position, length, SEGMENT_BYTES, lambda: 7)
        if segment.file is None:
            segment.make(IDENTITY, SEGMENT_BYTES)
        segment.reserve(segment.at(position + length), SEGMENT_BYTES)
        segment.write([b"\1" * length], position)
        position += length
        ends.append(position)
    return segments, ends


def bases(segments: Segments) -> list[int]:
    return [segment.base for segment in segments]


@given(lengths=LENGTHS)
def test_no_segment_is_larger_than_it_should_be(lengths: list[int]) -> None:
    """But for one that holds a single entry."""
    segments, position = Segments(Path("/nowhere")), 0
    held: dict[int, list[int]] = {}
    for length in lengths:
        segment = segments.for_append(position, length, SEGMENT_BYTES, lambda: 7)
        held.setdefault(segment.base, []).append(length)
        position += length
    assert list(held) == bases(segments) == sorted(held)
    for each in held.values():
        assert len(each) == 1 or sum(each) <= SEGMENT_BYTES - HEADER_BYTES


@given(lengths=LENGTHS, data=st.data())
def test_the_one_that_holds_a_position_and_all_from_it_on(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], data: st.DataObject
) -> None:
    segments, ends = filled(tmp_path_factory.mktemp("journal"), lengths)
    position = data.draw(st.integers(0, ends[-1]))
    expected = max(base for base in bases(segments) if base <= position)
    assert segments.holding(position).base == expected
    later = [segment.file for segment in segments if segment.base >= expected]
    assert segments.files_beyond(position) == later


@given(lengths=LENGTHS, data=st.data())
def test_what_is_cut_is_gone(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    segments, ends = filled(directory, lengths)
    assert segments.is_blank_from(ends[-1])
    end = data.draw(st.sampled_from([0, *ends[:-1]]))
    assert not segments.is_blank_from(end)
    segments.cut(end)
    assert segments.is_blank_from(end)
    again = Segments(directory)
    again.open(IDENTITY)
    assert bases(again) == bases(segments)
    assert again[-1].allocated == again[-1].at(end)
    assert len(again) == 1 or again[-1].base < end


@given(lengths=LENGTHS, data=st.data())
def test_what_is_needed_is_not_reclaimed(lengths: list[int], data: st.DataObject) -> None:
    directory = Path("/nowhere")
    made: list[int] = [0]
    for length in lengths:
        made.append(made[-1] + length)
    segments = Segments(directory, [Segment.planned(directory, base, 7) for base in made])
    with_files = data.draw(st.integers(1, len(made)))
    for segment in segments[:with_files]:
        segment.file = cast(File, segment)  # nothing is read from it
    below = data.draw(st.integers(0, made[-1] + 10))
    forgotten = segments.reclaim(below)
    assert [*(each.base for each in forgotten), *bases(segments)] == made
    assert segments.holding(min(below, made[with_files - 1])) is segments[0]
    assert segments[0].file is not None, "a crash now would leave no file"
    if forgotten:
        with pytest.raises(DamagedJournal):
            segments.holding(forgotten[-1].base)
    assert segments.reclaim_all() and not segments


def test_without_segments() -> None:
    segments = Segments(Path("/nowhere"))
    assert segments.files_beyond(0) == []
    assert segments.reclaim(100) == []
    with pytest.raises(DamagedJournal, match="no longer holds position 0"):
        segments.holding(0)
