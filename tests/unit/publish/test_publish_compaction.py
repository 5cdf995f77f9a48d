"""The plan of merges: never what a stream may still need, and few files in the long run at little cost."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import compaction
from faircopy.publish.compaction import DAY_MS, MEBIBYTE, Merge, Upkeep, expired, pace_ms, plan
from faircopy.publish.spark_log import DataFile
from tests.many import many

NOW_MS = 1_790_000_000_000
UPKEEP = Upkeep(horizon_days=1, grace_days=3, files_at_most=1000)

sizes = st.one_of(st.integers(1, 5000), st.integers(1, 300 * MEBIBYTE))


def aged(sizes_and_ages: list[tuple[int, float]]) -> list[DataFile]:
    """Files of these sizes and ages in days."""
    return [
        DataFile(f"f{i}", size, NOW_MS - int(age * DAY_MS)) for i, (size, age) in enumerate(sizes_and_ages)
    ]


@given(many(st.tuples(sizes, st.floats(0, 3)), 300))
def test_merges_are_of_neighbours_older_than_the_horizon(files: list[tuple[int, float]]) -> None:
    listed = aged(sorted(files, key=lambda file: -file[1]))
    merges = plan(listed, NOW_MS, UPKEEP)
    for merge in merges:
        assert merge.stop - merge.start >= 2
        assert all(file.modified_ms < NOW_MS - DAY_MS for file in listed[merge.start : merge.stop])
        assert sum(file.size for file in listed[merge.start : merge.stop]) < 2 * compaction.TIER_BYTES[-1]
    assert all(one.stop <= other.start for one, other in pairwise(merges))


def test_few_small_files_wait_for_more() -> None:
    assert plan(aged([(1000, 2)] * (compaction.MANY_FILES - 1)), NOW_MS, UPKEEP) == []
    assert plan(aged([(1000, 2)] * compaction.MANY_FILES), NOW_MS, UPKEEP) == [
        Merge(0, compaction.MANY_FILES)
    ]


def test_files_that_reach_the_next_tier_are_merged() -> None:
    assert plan(aged([(MEBIBYTE // 2, 2)] * 2), NOW_MS, UPKEEP) == [Merge(0, 2)]


def test_large_files_are_left_and_what_lies_between_them_is_merged() -> None:
    large, small = (200 * MEBIBYTE, 2.0), (1000, 2.0)
    assert plan(aged([large, large]), NOW_MS, UPKEEP) == []
    assert plan(aged([large, small, small, large, small, small]), NOW_MS, UPKEEP) == [Merge(1, 3)]


def test_work_at_once_is_bounded() -> None:
    merges = plan(aged([(15 * MEBIBYTE, 2)] * 200), NOW_MS, UPKEEP)
    assert 1 < len(merges) <= 4


@pytest.mark.parametrize("largest", [2_000, 200_000, 20_000_000])
def test_in_the_long_run_files_are_few_and_bytes_are_rewritten_seldom(largest: int) -> None:
    rng = random.Random(largest)
    live: list[DataFile] = []
    written = rewritten = 0
    most = 0
    now_ms = NOW_MS
    for number in range(20_000):
        now_ms += DAY_MS // 500
        live.append(DataFile(f"{number}", rng.randint(1, largest), now_ms))
        written += live[-1].size
        if number % 16 == 15:
            for start, stop in reversed(plan(live, now_ms, UPKEEP)):
                size = sum(file.size for file in live[start:stop])
                rewritten += size
                live[start:stop] = [DataFile("m", size, 1)]
        most = max(most, len(live) - written // compaction.TIER_BYTES[-1])
    assert most < 500 + 16 + 3 * compaction.MANY_FILES
    assert rewritten < 12 * written


def test_retired_files_are_deleted_after_the_grace() -> None:
    retired_ms = {"old": NOW_MS - 3 * DAY_MS, "young": NOW_MS - 3 * DAY_MS + 1}
    assert expired(retired_ms, NOW_MS, UPKEEP) == ["old"]


def test_the_pace_keeps_live_files_below_the_limit() -> None:
    now_ms = NOW_MS
    live: list[DataFile] = []
    for number in range(20_000):
        live.append(DataFile(f"{number}", 10_000, now_ms))
        if number % 16 == 15:
            for start, stop in reversed(plan(live, now_ms, UPKEEP)):
                live[start:stop] = [DataFile("m", 10_000 * (stop - start), 1)]
        assert len(live) <= UPKEEP.files_at_most
        now_ms += max(1000, pace_ms(len(live), UPKEEP))


def test_no_pace_is_asked_of_tables_with_few_files() -> None:
    assert pace_ms(499, UPKEEP) == 0
    assert pace_ms(500, UPKEEP) == DAY_MS // 400
