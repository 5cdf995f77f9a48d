"""The plan of merges: what is merged is never merged again, and few files are left for batch reads."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import names
from faircopy.publish.compaction import (
    DAY_MS,
    LARGE_BYTES,
    MANY_FILES,
    MEBIBYTE,
    MERGED_BYTES,
    Merge,
    Unmerged,
    plan,
    unmerged_in,
)
from faircopy.publish.spark_log import NEVER_NEW_MS, DataFile
from tests.many import many

NOW_MS = 1_790_000_000_000

sizes = st.one_of(st.integers(1, 5000), st.integers(1, 300 * MEBIBYTE))


def published(sizes_of_files: list[int], a_day: int = 1 << 60) -> list[DataFile]:
    """Files, of which so many are published on a day."""
    return [
        DataFile(names.published(number, [(0, 1)]), size, NOW_MS + number // a_day * DAY_MS)
        for number, size in enumerate(sizes_of_files)
    ]


def merged(live: list[DataFile], number: int, *, by_day: bool = False) -> list[DataFile]:
    """The files after all merges that are due."""
    for start, stop in reversed(plan(live, by_day=by_day)):
        size = sum(file.size for file in live[start:stop])
        covered = [file._replace(size=0) for file in live[start:stop]]
        live = [*live[:start], DataFile(names.merged(number, 0), size, NEVER_NEW_MS), *covered, *live[stop:]]
    return live


@given(many(sizes, 300))
def test_merges_are_of_small_neighbours(sizes_of_files: list[int]) -> None:
    listed = published(sizes_of_files)
    merges = plan(listed, by_day=False)
    for merge in merges:
        files = listed[merge.start : merge.stop]
        assert 2 <= len(files) <= MANY_FILES
        assert all(file.size < LARGE_BYTES for file in files)
        assert sum(file.size for file in files) < MERGED_BYTES + LARGE_BYTES
    assert all(one.stop <= other.start for one, other in pairwise(merges))


@given(many(sizes, 300), st.integers(1, 40))
def test_no_row_is_merged_twice(sizes_of_files: list[int], at_once: int) -> None:
    files = published(sizes_of_files)
    live: list[DataFile] = []
    for number in range(0, len(files), at_once):
        before = {file.name: file.size for file in live if names.is_merged(file.name) or file.is_covered}
        live = merged([*live, *files[number : number + at_once]], number)
        assert before.items() <= {file.name: file.size for file in live}.items()
    assert [file.name for file in live if not names.is_merged(file.name)] == [file.name for file in files]
    assert plan(live, by_day=False) == []


def test_few_small_files_wait_for_more() -> None:
    assert plan(published([1000] * (MANY_FILES - 1)), by_day=False) == []
    assert plan(published([1000] * MANY_FILES), by_day=False) == [Merge(0, MANY_FILES)]


def test_files_that_are_large_together_are_merged() -> None:
    assert plan(published([MERGED_BYTES // 4] * 9), by_day=False) == [Merge(0, 4), Merge(4, 8)]


def test_large_files_are_left_and_what_lies_between_them_is_merged() -> None:
    large, small = LARGE_BYTES, 1000
    assert plan(published([large, large]), by_day=False) == []
    assert plan(published([large, small, small, large, small, small]), by_day=False) == [Merge(1, 3)]


def test_the_file_without_rows_is_left() -> None:
    schema = DataFile(names.schema(32), 100, NOW_MS)
    assert plan([schema, *published([1000] * MANY_FILES)], by_day=False) == [Merge(1, MANY_FILES + 1)]


@given(many(sizes, 300), st.booleans(), st.integers(1, 100))
def test_what_waits_tells_when_to_merge(sizes_of_files: list[int], by_day: bool, a_day: int) -> None:
    files = published(sizes_of_files, a_day)
    unmerged = Unmerged(by_day)
    for number, file in enumerate(files):
        unmerged = unmerged.with_file(file)
        assert unmerged.is_due == bool(plan(files[: number + 1], by_day=by_day))
    assert unmerged == unmerged_in(files, by_day=by_day)
    assert not unmerged_in(merged(files, 0, by_day=by_day), by_day=by_day).is_due


@given(many(sizes, 300), st.integers(1, 100))
def test_days_are_not_mixed(sizes_of_files: list[int], a_day: int) -> None:
    files = published(sizes_of_files, a_day)
    for merge in plan(files, by_day=True):
        assert len({file.modified_ms for file in files[merge.start : merge.stop]}) == 1


def test_the_files_of_a_day_that_is_over_are_merged() -> None:
    assert plan(published([1000] * 10, 4), by_day=True) == [Merge(0, 4), Merge(4, 8)]
    assert plan(published([1000] * 10, 4), by_day=False) == []


@pytest.mark.parametrize("largest", [2_000, 200_000, 20_000_000])
def test_in_the_long_run_batch_reads_take_few_files(largest: int) -> None:
    rng = random.Random(largest)
    live: list[DataFile] = []
    written = 0
    for number in range(3_000):
        size = rng.randint(1, largest)
        live.append(DataFile(names.published(number, [(0, 1)]), size, NOW_MS))
        written += size
        if number % 16 == 15:
            live = merged(live, number)
    taken = len([file for file in live if not file.is_covered])
    assert taken <= MANY_FILES + 16 + number / MANY_FILES + written / MERGED_BYTES
