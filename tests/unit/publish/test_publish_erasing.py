"""Deleted rows leave files that have others, which stay: for all readers, at any moment, and over crashes."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import compaction, delta_log, erasing, names
from faircopy.publish.checksum import is_sound
from faircopy.publish.delta_directory import read_delta_log
from faircopy.publish.files import Files
from faircopy.publish.parquet_footer import FooterFormatError, moved
from faircopy.publish.rewrite import has_rows_below, write_without
from faircopy.publish.spark_log import DataFile
from faircopy.publish.table import Table
from faircopy.publish.trimming import Keep, Upkeep
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import Partition
from tests.unit.publish.simulated_disk import DirectoryNode, SimulatedFiles, crashed
from tests.unit.publish.table_bench import START_MS, TABLE, Place
from tests.unit.publish.table_reader import (
    delta_contents,
    listed,
    live_contents,
    offsets_in,
    streamed_contents,
)

PARTITIONS: list[Partition] = [("orders", 0), ("orders", 1), ("payments", 0)]
PUBLICATIONS = 20
ROWS = 3  # of each partition in a publication
FIRST = 31  # in the middle of publication 10
DELETED = Upkeep((Keep("orders", {0: FIRST}, deleted={0: FIRST}), Keep("payments")))


@pytest.fixture(autouse=True)
def small_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)


def published() -> Place:
    """A table with a merged unit and small files after it."""
    place = Place(PARTITIONS)
    for number in range(PUBLICATIONS):
        for partition in PARTITIONS:
            place.log.append(partition, [NewRecord(os.urandom(20), b"key", START_MS)] * ROWS, f"7.0.{number}")
        place.publish()
        place.now_ms += 1000
    return place


def globbed(files: SimulatedFiles) -> list[bytes]:
    found = sorted(name for name in files.list_directory(TABLE) if name.endswith(".parquet"))
    return [files.read(TABLE / name) for name in found if not name.startswith((".", "_"))]


READERS = {"batch": live_contents, "stream": streamed_contents, "delta": delta_contents}


def offsets_for_all(files: SimulatedFiles) -> list[dict[Partition, list[int]]]:
    found = [offsets_in(read(files, TABLE)) for read in READERS.values()] + [offsets_in(globbed(files))]
    return [{partition: sorted(offsets) for partition, offsets in each.items()} for each in found]


def expected(first: int) -> dict[Partition, list[int]]:
    ends = PUBLICATIONS * ROWS
    return {each: list(range(first if each == ("orders", 0) else 0, ends)) for each in PARTITIONS}


def tidy_all(table: Table, upkeep: Upkeep = DELETED) -> int:
    rewritten = 0
    while True:
        tidied = table.tidy(upkeep)
        rewritten += tidied.rewritten_files
        if not tidied.waiting:
            return rewritten


@pytest.mark.parametrize("files_at_once", [1, 3, 100])
def test_deleted_rows_are_gone_for_all_readers(files_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "FILES_AT_ONCE", files_at_once)
    place = published()
    before = place.files.list_directory(TABLE), listed(place.files, TABLE)
    assert any(names.is_merged(name) for name in before[0])
    rewritten = tidy_all(place.table)
    assert offsets_for_all(place.files) == [expected(FIRST)] * 4
    assert (place.files.list_directory(TABLE), listed(place.files, TABLE)) == before
    assert rewritten > 11
    for file in place.table.live:
        assert is_sound(place.files, TABLE, file)
    check_statistics(place.files)
    assert all(is_measured for is_measured in measured(place.files).values())
    assert tidy_all(place.table) == 0
    place.open()
    assert tidy_all(place.table) == 0
    assert place.table.held.next_offsets["orders"] == {0: 60, 1: 60}


def measured(files: SimulatedFiles) -> dict[str, bool]:
    _, snapshot = read_delta_log(files, TABLE / names.DELTA_LOG)
    return {name: delta_log.is_measured(added) for name, added in snapshot.adds.items()}


def check_statistics(files: SimulatedFiles) -> None:
    """What the Delta log says of a file is true, or it says nothing."""
    _, snapshot = read_delta_log(files, TABLE / names.DELTA_LOG)
    for name, added in snapshot.adds.items():
        if delta_log.is_measured(added):
            rows = pq.read_metadata(io.BytesIO(files.read(TABLE / name))).num_rows
            assert json.loads(added["add"]["stats"])["numRecords"] == rows


def test_merges_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    place = published()
    tidy_all(place.table)
    for number in range(PUBLICATIONS):
        place.log.append(("payments", 0), [NewRecord(b"%d" % number)])
        place.publish()
    found = offsets_for_all(place.files)
    assert all(each == found[0] for each in found)
    assert found[0]["orders", 0] == list(range(FIRST, 60)) and len(found[0]["payments", 0]) == 80
    assert tidy_all(place.table) == 0


def test_all_rows_of_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    place = published()
    upkeep = Upkeep((Keep("orders", {0: 60}, deleted={0: 60}), Keep("payments")))
    tidy_all(place.table, upkeep)
    rest = {each: list(range(60)) for each in PARTITIONS[1:]}
    assert offsets_for_all(place.files) == [rest] * 4


def test_what_is_not_said_to_be_deleted_stays() -> None:
    """Retention moves the start of a log, too: then rows go by whole publications."""
    place = published()
    assert tidy_all(place.table, Upkeep((Keep("orders", {0: FIRST}), Keep("payments")))) == 0
    assert offsets_for_all(place.files) == [expected(0)] * 4


def test_a_crash_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each moment, every reader finds each row that is kept once; afterwards, no deleted one."""
    monkeypatch.setattr(erasing, "FILES_AT_ONCE", 3)
    place = published()
    moments: list[DirectoryNode] = []

    def remember(operation: str) -> None:
        if operation != "write":  # Parquet takes many, and one is much like another
            moments.append(place.files.snapshot())

    place.files.before_operation = remember
    tidy_all(place.table)
    place.files.before_operation = lambda _: None
    assert len(moments) > 50
    for number, moment in enumerate(moments):
        for found in offsets_for_all(SimulatedFiles(moment)):
            check_kept(found)
        check_statistics(SimulatedFiles(moment))
        for mode in ("lost", "kept", "mixed")[number % 3 : number % 3 + 1]:
            files = crashed(moment, mode, number)
            table = Table(files, TABLE, lambda: place.now_ms)
            for found in offsets_for_all(files):
                check_kept(found)
            check_statistics(files)
            assert all(measured(files).values())
            tidy_all(table)
            assert offsets_for_all(files) == [expected(FIRST)] * 4
            assert all(is_sound(files, TABLE, file) for file in table.live)
            assert [name for name in files.list_directory(TABLE) if names.is_temporary(name)] == []


def check_kept(found: dict[Partition, list[int]]) -> None:
    kept = [offset for offset in found["orders", 0] if offset >= FIRST]
    assert found | {("orders", 0): kept} == expected(FIRST)
    assert len(set(found["orders", 0])) == len(found["orders", 0])


def test_a_damaged_file_is_left_alone(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.log.append(("orders", 0), [NewRecord(b"a"), NewRecord(b"b")])
    place.publish()
    place.log.append(("orders", 0), [NewRecord(b"c")])
    place.publish()
    damaged = place.files.file(TABLE / place.table.live[1].name)
    damaged.content = damaged.content[:100] + b"x" + damaged.content[101:]
    assert tidy_all(place.table, Upkeep((Keep("orders", {0: 1}, deleted={0: 1}),))) == 0
    assert "deleted rows stay in" in caplog.text and "does not match the checksum" in caplog.text


records = st.builds(
    NewRecord,
    value=st.none() | st.binary(max_size=40),
    key=st.none() | st.binary(max_size=3),
    timestamp_ms=st.integers(0, 2**40),
)


@given(st.lists(st.lists(records, min_size=1, max_size=40), min_size=1, max_size=3), st.data())
def test_any_rows_can_be_taken_out_of_any_file(parts: list[list[NewRecord]], data: st.DataObject) -> None:
    partitions: list[Partition] = [("orders", number) for number in range(len(parts))]
    place = Place(partitions)
    for partition, messages in zip(partitions, parts, strict=True):
        place.log.append(partition, messages, "7.0.1")
    place.publish()
    file = place.table.live[-1]
    first = data.draw(st.integers(1, len(parts[0])))
    path, firsts = TABLE / file.name, {"orders": {0: first}}
    assert has_rows_below(place.files, path, firsts)
    before = pq.read_table(io.BytesIO(place.files.read(path))).to_pylist()
    rewritten = write_without(place.files, TABLE, file, file.size, firsts)
    place.files.rename(TABLE / names.temporary(file.name), path)
    content = place.files.read(path)
    assert pq.read_table(io.BytesIO(content)).to_pylist() == before[first:]
    assert is_sound(place.files, TABLE, file) and len(content) == file.size
    assert rewritten.content.rows == len(before) - first
    assert not has_rows_below(place.files, path, firsts)


def test_pages_of_the_new_content_are_no_pages_of_the_former_one(tmp_path: Path) -> None:
    """A query that has read the former footer, and then reads the new content, fails."""
    place = published()
    file = place.table.live[1]
    former = place.files.read(TABLE / file.name)
    write_without(place.files, TABLE, file, file.size, {"orders": {0: 2}})
    new = place.files.read(TABLE / names.temporary(file.name))
    size = int.from_bytes(former[-8:-4], "little") + 8
    mixed = new[:-size] + former[-size:]
    for column in pq.read_schema(io.BytesIO(former)).names:
        with pytest.raises(OSError, match=r"."):
            pq.read_table(io.BytesIO(mixed), columns=[column])


def footer_of(content: bytes) -> bytes:
    size = int.from_bytes(content[-8:-4], "little")
    return content[-8 - size : -8]


def test_footers_that_move() -> None:
    place = published()
    footer = footer_of(place.files.read(TABLE / place.table.live[1].name))
    assert moved(footer, 0) == footer
    there = moved(footer, 1 << 40)
    assert there != footer and moved(there, -(1 << 40)) == footer


@given(st.data())
def test_any_footer_is_moved_or_refused(data: st.DataObject) -> None:
    buffer = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(_SOME)), buffer)
    footer = bytearray(footer_of(buffer.getvalue()))
    for _ in range(data.draw(st.integers(0, 3))):
        footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = moved(bytes(footer[: data.draw(st.integers(0, len(footer)))]), 7)
    except FooterFormatError:
        return
    assert isinstance(found, bytes)


def some_file() -> bytes:
    place = Place()
    place.log.append(("orders", 0), [NewRecord(b"value")])
    place.publish()
    return place.files.read(TABLE / place.table.live[-1].name)


_SOME = some_file()


def test_on_a_real_disk(tmp_path: Path) -> None:
    from tests.unit.publish.published_log import GrowingLog

    log = GrowingLog(Files(), tmp_path, PARTITIONS)
    table = Table(Files(), tmp_path / "orders", lambda: START_MS)
    for partition in PARTITIONS:
        log.append(partition, [NewRecord(b"%d" % number) for number in range(10)])
    table.publish(log.cut())
    file: DataFile = table.live[-1]
    size = (tmp_path / "orders" / file.name).stat().st_size
    assert table.tidy(Upkeep((Keep("orders", {0: 4}, deleted={0: 4}), Keep("payments")))).rewritten_files == 1
    rows: list[Any] = pq.ParquetFile(tmp_path / "orders" / file.name).read().to_pylist()
    assert len(rows) == 26 and (tmp_path / "orders" / file.name).stat().st_size == size
    table.close()
