"""What a table drops: whole units whose rows are all past keeping; their files go after a grace."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.publish import compaction, names
from faircopy.publish.spark_log import NEVER_NEW_MS, DataFile
from faircopy.publish.table import Table
from faircopy.publish.trimming import HOUR_MS, Keep, Unit, Upkeep, is_past_keeping, units
from tests.many import many
from tests.unit.publish.simulated_disk import DirectoryNode, crashed
from tests.unit.publish.table_bench import DAY_MS, GOOD, TABLE, Place, publish_days
from tests.unit.publish.table_reader import delta_contents, offsets_in, read_offsets

ALL = Keep("orders")


def tidy(place: Place, *keeps: Keep, grace_ms: int = HOUR_MS) -> int:
    return place.table.tidy(Upkeep(keeps, grace_ms)).dropped_files


def delta_offsets(place: Place) -> dict[tuple[str, int], list[int]]:
    found = offsets_in(delta_contents(place.files, TABLE))
    return {partition: sorted(offsets) for partition, offsets in found.items()}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """40 publications of two partitions, one to three rows each; most are merged."""
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    place = Place([("orders", 0), ("orders", 1)])
    publish_days(place, 40)
    return place


def test_rows_that_the_topic_no_longer_has(place: Place) -> None:
    """Both partitions must have lost them. Batch reads, streams and the Delta log agree at any moment."""
    ends = place.log.ends  # they grow
    assert tidy(place, ALL) == 0
    assert tidy(place, Keep("orders", {0: 40})) == 0
    assert tidy(place, Keep("orders", {0: 40, 1: 40})) > 0
    left = place.offsets()
    assert left == {p: list(range(left[p][0], ends[p])) for p in ends} == delta_offsets(place)
    # Files of one to three rows: not one goes too few.
    assert all(38 <= offsets[0] <= 40 for offsets in left.values())
    publish_days(place, 20)
    assert place.offsets() == {p: list(range(left[p][0], ends[p])) for p in ends} == delta_offsets(place)
    left = place.offsets()
    assert tidy(place, Keep("orders", {0: 40, 1: 40})) == 0
    place.open()
    assert place.offsets() == left == delta_offsets(place)


def test_a_part_of_a_publication_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a merged file, too: of each reader's rows, those of whole publications go, and no others."""
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    partitions = [("orders", 0), ("orders", 1), ("payments", 0)]
    place = Place(partitions)
    for _ in range(20):
        for partition in partitions:
            place.log.append(partition, GOOD[:3])
        place.publish()
    assert any(names.is_merged(file.name) for file in place.table.live)
    everything = {partition: list(range(60)) for partition in partitions}
    for firsts in ({0: 31}, {0: 31, 1: 60}, {0: 2, 1: 2}):
        assert tidy(place, Keep("orders", firsts), Keep("payments")) == 0
        assert place.offsets() == everything == delta_offsets(place)
    assert tidy(place, Keep("orders", {0: 31, 1: 32}), Keep("payments", {0: 60})) > 0
    left = {partition: list(range(30, 60)) for partition in partitions}
    assert place.offsets() == left == delta_offsets(place)
    place.open()
    assert tidy(place, Keep("orders", {0: 33, 1: 32}), Keep("payments", {0: 60})) == 0
    assert tidy(place, Keep("orders", {0: 33, 1: 33}), Keep("payments", {0: 60})) == 1
    assert place.offsets() == {partition: list(range(33, 60)) for partition in partitions}


publications = st.dictionaries(st.integers(0, 2), st.integers(1, 3), min_size=1, max_size=3)


@settings(max_examples=20)
@given(many(publications, 40, least=16), st.lists(st.integers(0, 60), min_size=3, max_size=3), st.booleans())
def test_a_publication_goes_when_each_of_its_rows_may_go(
    published: list[dict[int, int]], firsts: list[int], are_merged: bool
) -> None:
    """Exactly then; but in a merged file, it may have to wait for older ones."""
    place = Place([("orders", number) for number in range(3)])
    held: list[set[tuple[int, int]]] = []  # partition and offset of the rows of each publication
    with mock.patch.object(compaction, "MANY_FILES", 6 if are_merged else 1_000):
        for rows in published:
            held.append(set())
            for number, count in rows.items():
                begin = place.log.ends["orders", number]
                held[-1] |= {(number, begin + each) for each in range(count)}
                place.log.append(("orders", number), GOOD[:count])
            place.publish()
    tidy(place, Keep("orders", dict(enumerate(firsts))))
    assert place.offsets() == delta_offsets(place)
    left = {(number, offset) for (_, number), offsets in place.offsets().items() for offset in offsets}
    is_there = [rows <= left for rows in held]
    may_go = [all(offset < firsts[number] for number, offset in rows) for rows in held]
    assert set().union(*(rows for rows, there in zip(held, is_there, strict=True) if there)) == left
    for number, (there, may) in enumerate(zip(is_there, may_go, strict=True)):
        has_to_wait = are_merged and may and any(is_there[:number])
        assert there == (not may) or has_to_wait


def test_rows_that_are_too_old(place: Place) -> None:
    assert tidy(place, Keep("orders", {}, 11 * DAY_MS)) == 0
    assert tidy(place, Keep("orders", {}, 5 * DAY_MS)) > 0
    assert {offsets[0] > 20 for offsets in place.offsets().values()} == {True}


def test_a_deleted_topic_keeps_nothing(place: Place) -> None:
    """What the table holds is known all the same, and publishing goes on."""
    held, ends = place.table.held, dict(place.log.ends)
    assert tidy(place) > 0
    assert place.offsets() == {} == delta_offsets(place)
    assert tidy(place) == 0
    assert place.open().held == held
    publish_days(place, 20)
    assert place.offsets() == {p: list(range(ends[p], place.log.ends[p])) for p in ends}


def test_files_are_deleted_after_the_grace(place: Place) -> None:
    before = set(place.files.list_directory(TABLE))
    tidy(place, grace_ms=DAY_MS)
    assert before < set(place.files.list_directory(TABLE))
    place.now_ms += DAY_MS - 1
    place.open()
    tidy(place, grace_ms=DAY_MS)
    assert before < set(place.files.list_directory(TABLE))
    place.now_ms += 1
    assert place.table.tidy(Upkeep((), DAY_MS)).retired_files == 0
    left = [name for name in place.files.list_directory(TABLE) if names.sequence_of(name) is not None]
    assert [names.is_schema(name) for name in sorted(left)] == [True, False]


@pytest.mark.parametrize("keeps", [(Keep("orders", {0: 40, 1: 40}),), ()], ids=["some", "nothing"])
@pytest.mark.parametrize("mode", ["lost", "kept", "mixed"])
def test_a_crash_at_any_operation(place: Place, keeps: tuple[Keep, ...], mode: str) -> None:
    """All of it is dropped, or nothing, and it can be done again."""
    upkeep = Upkeep(keeps, grace_ms=0)
    before, held = place.offsets(), place.table.held
    disks: list[DirectoryNode] = []
    place.files.before_operation = lambda _operation: disks.append(place.files.snapshot())
    place.table.tidy(upkeep)
    place.files.before_operation = lambda _operation: None
    after = place.offsets()
    assert len(disks) > 10 and before != after
    for seed, disk in enumerate(disks):
        files = crashed(disk, mode, seed)
        assert read_offsets(files, TABLE) in (before, after)
        table = Table(files, TABLE, lambda: place.now_ms)
        assert table.held == held
        table.tidy(upkeep)
        found = offsets_in(delta_contents(files, TABLE))
        assert {partition: sorted(offsets) for partition, offsets in found.items()} == after
        assert read_offsets(files, TABLE) == after
        table.close()


def test_a_new_table_has_nothing_to_drop() -> None:
    assert tidy(Place()) == 0


def test_units() -> None:
    schema = DataFile(names.schema(32), 10, 50)
    covered = [DataFile(names.published(n, [(n, n + 1)]), 0, 100 + n) for n in range(3)]
    merged = DataFile(names.merged(63, 0), 10, NEVER_NEW_MS)
    lone = [DataFile(names.published(n, [(n, n + 1)]), 10, 100 + n) for n in range(3, 5)]
    assert units([schema, merged, *covered, *lone]) == [
        Unit((merged, *covered), 102),
        Unit((lone[0],), 103),
        Unit((lone[1],), 104),
    ]


offsets = st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=3)


@given(st.dictionaries(st.sampled_from("ab"), offsets), offsets, st.integers(-1, 3), st.integers(0, 3))
def test_a_unit_goes_when_each_of_its_rows_may_go(
    ends: dict[str, dict[int, int]], firsts: dict[int, int], keep_ms: int, age_ms: int
) -> None:
    keeps = {"a": Keep("a", firsts, keep_ms)}
    is_old = age_ms > keep_ms >= 0
    expected = all(
        is_old or end <= firsts.get(partition, 0)
        for topic, partitions in ends.items()
        if topic in keeps
        for partition, end in partitions.items()
    )
    assert is_past_keeping(ends, Unit((), 100), keeps, 100 + age_ms) == expected
