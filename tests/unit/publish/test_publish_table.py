"""One table, from requests to what readers see: rows, offsets, retention, poison, damage, merges."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.publish import compaction, data_file, log_reader, merge, names
from faircopy.publish.compaction import DAY_MS, Upkeep
from faircopy.publish.drop import drop_table
from faircopy.publish.files import Files
from faircopy.publish.log_directory import TableDamagedError, TableMovedError
from faircopy.publish.log_reader import LogMismatchError
from faircopy.publish.offsets import Held
from faircopy.publish.relocate import relocate
from faircopy.publish.requests import Cut
from faircopy.publish.schema import SCHEMA
from faircopy.publish.table import MixedTopicsError, Table
from faircopy.publish.table_state import NewerFormatError
from faircopy.wire.records import NewRecord, build_batch
from tests.unit.publish.publish_oracle import (
    POISON,
    logged,
    loop_over,
    message_lists,
    recompressed,
    with_section,
)
from tests.unit.publish.published_log import GrowingLog, Partition
from tests.unit.publish.simulated_disk import SimulatedFiles
from tests.unit.publish.table_reader import listed, live_contents, read_offsets, read_table

TABLE = Path("/plain/orders")
ORDERS: Partition = ("orders", 0)
START_MS = 1_790_000_000_000
UPKEEP = Upkeep(horizon_days=1, grace_days=2)
GOOD = [NewRecord(b"value %d" % i, b"key", 1000 + i, (("h", b"x"),) * (i % 3)) for i in range(10)]


class Place:
    """A disk, a log on it, a table to publish it to, and a clock."""

    def __init__(self, partitions: list[Partition] | None = None, directory: Path = TABLE) -> None:
        self.files = SimulatedFiles()
        self.files.make_directory(Path("/log"))
        self.log = GrowingLog(self.files, Path("/log"), partitions or [ORDERS])
        self.now_ms = START_MS
        self.directory = directory
        self.table = self.open()

    def open(self) -> Table:
        self.files.locked.clear()
        self.table = Table(self.files, self.directory, lambda: self.now_ms)
        return self.table

    def publish(self, cuts: tuple[Cut, ...] | None = None) -> Any:
        return self.table.publish(self.log.cut() if cuts is None else cuts, UPKEEP)

    def offsets(self) -> dict[Partition, list[int]]:
        return read_offsets(self.files, self.directory)


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_new_table_has_columns_and_no_rows(place: Place) -> None:
    table = read_table(place.files, TABLE)
    assert (table.num_rows, table.column_names) == (0, SCHEMA.names)
    assert place.table.held.next_offsets == {}


@settings(max_examples=30)
@given(
    publications=st.lists(
        st.lists(st.tuples(st.sampled_from([("b", 1), ("b", 0), ("a", 7)]), message_lists), max_size=4),
        max_size=4,
    )
)
def test_rows_are_those_of_the_log_sorted_in_each_file(
    publications: list[list[tuple[Partition, list[NewRecord]]]],
) -> None:
    place = Place([("b", 1), ("b", 0), ("a", 7)])
    expected: list[dict[str, Any]] = []
    for number, batches in enumerate(publications):
        rows: list[dict[str, Any]] = []
        for partition, messages in batches:
            batch = build_batch(messages, base_offset=place.log.ends[partition])
            place.log.append(partition, messages, f"7.0.{number}")
            (one,) = logged(batch, [f"7.0.{number}"])
            where = {"topic": partition[0], "partition": partition[1]}
            rows += [row | where for row in loop_over(one, 0)]
        assert place.publish().rows == len(rows)
        expected += sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))
    assert read_table(place.files, TABLE).to_pylist() == [
        {n: row[n] for n in SCHEMA.names} for row in expected
    ]
    assert place.open().held.next_offsets == {
        topic: {p: end for (t, p), end in place.log.ends.items() if t == topic and end}
        for topic in sorted({topic for (topic, _), end in place.log.ends.items() if end})
    }


def test_how_files_are_encoded(place: Place) -> None:
    place.log.append(ORDERS, GOOD, "7.0.1")
    place.publish()
    group = pq.ParquetFile(io.BytesIO(live_contents(place.files, TABLE)[-1])).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    dictionary = {name for name, column in columns.items() if column.has_dictionary_page}
    assert dictionary == {"topic", "partition", "timestampType", "txid"}
    statistics = {name for name, column in columns.items() if column.is_stats_set}
    assert statistics == {"partition", "offset", "timestamp"}
    for name in ("offset", "timestamp"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings


def test_a_repeated_publication_is_done_once(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    cuts = place.log.cut()
    first = place.publish(cuts)
    assert (first.sequence, first.rows, first.live_files) == (33, 10, 2)
    again = place.publish(cuts)
    assert (again.sequence, again.rows, again.bytes, again.live_files) == (33, 0, 0, 2)
    place.open()
    assert place.publish(cuts).rows == 0
    assert place.offsets() == {ORDERS: list(range(10))}


def test_a_request_that_begins_within_what_is_published_adds_the_rest(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    (first,) = place.log.cut()
    place.publish((first,))
    place.log.append(ORDERS, GOOD)
    (second,) = place.log.cut()
    both = second._replace(first_offset=0, chunks=first.chunks + second.chunks)
    assert place.publish((both,)).rows == 10
    assert place.offsets() == {ORDERS: list(range(20))}


def test_what_retention_removed_is_skipped_and_told(place: Place) -> None:
    for _ in range(4):
        place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    published = place.publish((cut._replace(first_offset=15),))
    assert (published.rows, published.skipped_offsets, published.skipped_records) == (25, 15, 0)
    assert place.offsets() == {ORDERS: list(range(15, 40))}


def test_retention_removed_all(place: Place) -> None:
    published = place.publish((Cut("orders", "0f", 0, 50, 50, ()),))
    assert (published.rows, published.skipped_offsets) == (0, 50)
    assert place.open().held.next_offsets == {"orders": {0: 50}}


@pytest.mark.parametrize("name", POISON)
def test_poisoned_batches_are_counted_and_do_not_stop_the_table(place: Place, name: str) -> None:
    place.log.append(ORDERS, GOOD)
    place.log.append_batch(ORDERS, with_section(build_batch(GOOD, base_offset=10), POISON[name]), 10)
    place.log.append(ORDERS, GOOD)
    published = place.publish()
    assert (published.rows, published.skipped_records) == (20, 10)
    assert place.offsets() == {ORDERS: [*range(10), *range(20, 30)]}


def test_nothing_but_poison(place: Place) -> None:
    place.log.append_batch(ORDERS, with_section(build_batch(GOOD), b"\xff" * 50), 10)
    assert (place.publish().rows, place.open().held.next_offsets) == (0, {"orders": {0: 10}})
    place.log.append(ORDERS, GOOD)
    assert place.publish().rows == 10


def test_chunks_in_several_files_and_pieces(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "PIECE_BYTES", 150)
    for number in range(20):
        place.log.append(ORDERS, GOOD[: 1 + number % 10] * (1 + number // 5))
    (cut,) = place.log.cut()
    (chunk,) = cut.chunks
    content = place.files.read(Path(chunk.path))
    half = next(batch.at for batch in logged(content) if batch.at > len(content) // 2)
    other = Path("/log/other.log")
    place.files.create(other).write(b"garbage" + content[half:])
    parts = (chunk._replace(size=half), chunk._replace(path=str(other), position=7, size=len(content) - half))
    assert place.publish((cut._replace(chunks=parts),)).rows == place.log.ends[ORDERS]
    assert place.offsets() == {ORDERS: list(range(place.log.ends[ORDERS]))}


def test_whole_batches_outside_of_the_cut_are_skipped(place: Place) -> None:
    for number in range(4):
        place.log.append(ORDERS, GOOD, f"7.0.{number}")
    (cut,) = place.log.cut()
    assert place.publish((cut._replace(end_offset=10),)).rows == 10
    assert place.publish((cut._replace(first_offset=10, end_offset=30),)).rows == 20
    assert place.offsets() == {ORDERS: list(range(30))}
    txids = read_table(place.files, TABLE).column("txid").to_pylist()
    assert txids == [f"7.0.{n}" for n in range(3) for _ in range(10)]


def wrong_log(place: Place, kind: str) -> Cut:
    for _ in range(3):
        place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    (chunk,) = cut.chunks
    batch = chunk.size // 3
    if kind == "bit flipped":
        node = place.files.file(Path(chunk.path))
        node.content = node.content[: batch + 70] + b"\xff" + node.content[batch + 71 :]
    chunks = {
        "batch missing": (chunk._replace(size=batch), chunk._replace(position=2 * batch, size=batch)),
        "first missing": (chunk._replace(position=batch, size=2 * batch),),
        "last missing": (chunk._replace(size=2 * batch),),
        "none": (),
        "beyond the file": (chunk._replace(size=chunk.size + 1),),
        "in the middle of a batch": (chunk._replace(size=chunk.size - 1),),
        "from the middle of a batch": (chunk._replace(position=9, size=chunk.size - 9),),
        "twice": (chunk, chunk),
        "one over": (chunk,),
    }
    ends = {"one over": cut.end_offset + 1, "twice": cut.end_offset + 30}
    return cut._replace(chunks=chunks.get(kind, (chunk,)), end_offset=ends.get(kind, cut.end_offset))


@pytest.mark.parametrize(
    "kind",
    [
        "bit flipped",
        "batch missing",
        "first missing",
        "last missing",
        "none",
        "beyond the file",
        "in the middle of a batch",
        "from the middle of a batch",
        "twice",
        "one over",
    ],
)
def test_a_log_that_is_not_what_the_request_says(place: Place, kind: str) -> None:
    cut = wrong_log(place, kind)
    with pytest.raises(LogMismatchError):
        place.publish((cut,))
    assert place.offsets() == {}
    assert place.open().held.next_offsets == {}
    assert not any(names.is_temporary(path.name) for path in place.files.walk(TABLE))


def test_a_cut_through_a_batch(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    with pytest.raises(LogMismatchError, match="crosses"):
        place.publish((cut._replace(end_offset=7),))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches(place: Place, codec: int) -> None:
    place.log.append_batch(ORDERS, recompressed(build_batch(GOOD * 50), codec), 500)
    assert place.publish().rows == 500


def test_row_groups_are_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_file, "ROW_GROUP_BYTES", 50_000)
    monkeypatch.setattr("faircopy.publish.record_run.RUN_BYTES", 10_000)
    for _ in range(60):
        place.log.append(ORDERS, [NewRecord(bytes(1000))] * 10)
    place.publish()
    metadata = pq.ParquetFile(io.BytesIO(live_contents(place.files, TABLE)[-1])).metadata
    assert metadata.num_row_groups > 8
    assert place.offsets() == {ORDERS: list(range(600))}


def publish_days(place: Place, publications: int, each_ms: int = DAY_MS // 4) -> None:
    for number in range(publications):
        for partition in place.log.ends:
            place.log.append(partition, GOOD[: 1 + number % 3], f"7.0.{number}")
        place.publish()
        place.now_ms += each_ms


@pytest.mark.parametrize("band_bytes", [1, 2000, 32 * 1024 * 1024])
def test_merged_files_are_sorted_and_complete(monkeypatch: pytest.MonkeyPatch, band_bytes: int) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    monkeypatch.setattr(merge, "BAND_BYTES", band_bytes)
    place = Place([("orders", 1), ("orders", 0), ("audit", 0)])
    publish_days(place, 80)
    lines = listed(place.files, TABLE)
    merged = [line for line in lines if line["modificationTime"] == 1]
    assert merged and len(lines) < 40
    table = pq.read_table(io.BytesIO(live_contents(place.files, TABLE)[0]))
    keys = list(zip(*(table.column(n).to_pylist() for n in ("topic", "partition", "offset")), strict=True))
    assert keys == sorted(keys) and len(keys) > 50
    assert table.slice(0, 1).to_pylist()[0]["headers"] is None
    assert place.offsets() == {p: list(range(end)) for p, end in place.log.ends.items()}
    assert place.open().held.next_offsets == {"orders": {0: 159, 1: 159}, "audit": {0: 159}}


def test_merged_away_files_stay_for_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    place = Place()
    publish_days(place, 16)
    (first,) = (name for name in place.files.list_directory(TABLE) if name.startswith("d-0000000033-0..0."))
    assert not any(line["path"].endswith(first) for line in listed(place.files, TABLE))
    for _ in range(2):  # it is retired at entry 47; 2 days are 8 publications, and only each 16th deletes
        assert first in place.files.list_directory(TABLE)
        place.open()
        publish_days(place, 7)
    publish_days(place, 16)
    assert first not in place.files.list_directory(TABLE)


def test_a_merge_that_fails_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    place = Place()
    publish_days(place, 5)
    (name,) = (name for name in place.files.list_directory(TABLE) if name.startswith("d-0000000034-1..2."))
    damaged = place.files.file(TABLE / name)
    damaged.content = bytes(len(damaged.content))
    with caplog.at_level(logging.WARNING):
        publish_days(place, 40)
    assert "merging files" in caplog.text
    assert len(place.table.live) == 46


def test_times_in_the_log_never_go_back(place: Place) -> None:
    for now_ms in (START_MS, START_MS - 5000, START_MS + 5000, 0):
        place.now_ms = now_ms
        place.log.append(ORDERS, GOOD)
        place.publish()
    times = [line["modificationTime"] for line in listed(place.files, TABLE)]
    assert times == [START_MS] * 3 + [START_MS + 5000] * 2


def some_table() -> Place:
    place = Place()
    publish_days(place, 3)
    return place


def break_log(place: Place, name: str, content: bytes | None) -> None:
    entries = place.files.directory(TABLE / "_spark_metadata").names
    if content is None:
        del entries[name]
    else:
        place.files.file(TABLE / "_spark_metadata" / name).content = content


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("33", b"", "33 is damaged"),
        ("34", b"v1\n{torn", "34 is damaged"),
        ("33", b"v9", "33 is damaged"),
        ("34", None, "an entry after 31 is missing"),
        ("31.compact", None, "an entry after 15 is missing"),
    ],
)
def test_a_damaged_log(name: str, content: bytes | None, message: str) -> None:
    place = some_table()
    break_log(place, name, content)
    with pytest.raises(TableDamagedError, match=message):
        place.open()


def test_other_damage() -> None:
    place = some_table()
    table = place.files.directory(TABLE)
    last = place.table.live[-1].name
    good = place.files.file(TABLE / last).content
    place.files.file(TABLE / last).content = good[:-1]
    with pytest.raises(TableDamagedError, match="bytes, not"):
        place.open()
    place.files.file(TABLE / last).content = good[:-30] + bytes(30)
    with pytest.raises(TableDamagedError, match="is damaged"):
        place.open()
    del table.names[last]
    with pytest.raises(TableDamagedError, match="is missing"):
        place.open()
    del table.names["_spark_metadata"]
    with pytest.raises(TableDamagedError, match="no _spark_metadata"):
        place.open()


def test_the_state_file() -> None:
    place = some_table()
    state = place.files.file(TABLE / "_faircopy.json")
    state.content = state.content.replace(b'"format": 2', b'"format": 3')
    with pytest.raises(NewerFormatError):
        place.open()
    state.content = b"{"
    with pytest.raises(TableDamagedError):
        place.open()
    del place.files.directory(TABLE).names["_faircopy.json"]
    place.open()


def test_files_of_others_are_left_alone(place: Place) -> None:
    place.files.create(TABLE / "notes.txt").write(b"mine")
    place.open()
    assert "notes.txt" in place.files.list_directory(TABLE)


def test_a_moved_table() -> None:
    place = some_table()
    place.directory = Path("/plain/moved to % ü")
    place.files.rename(TABLE, place.directory)
    with pytest.raises(TableMovedError, match="faircopy tables relocate"):
        place.open()
    place.files.locked.clear()
    assert relocate(place.files, place.directory) == 4
    assert relocate(place.files, place.directory) == 0
    place.open()
    place.log.append(ORDERS, GOOD)
    place.publish()
    assert place.offsets() == {ORDERS: list(range(16))}


def test_a_moved_table_of_which_a_part_is_missing() -> None:
    place = some_table()
    place.directory = Path("/plain/moved")
    place.files.rename(TABLE, place.directory)
    del place.files.directory(place.directory).names[place.table.live[1].name]
    place.files.locked.clear()
    with pytest.raises(TableDamagedError, match="is missing"):
        relocate(place.files, place.directory)


def test_drop() -> None:
    place = some_table()
    place.files.locked.clear()
    drop_table(place.files, TABLE)
    assert list(place.files.walk(Path("/plain"))) == []
    drop_table(place.files, TABLE)
    place.open()
    assert place.table.held.next_offsets == {}


def test_what_is_no_table_is_not_dropped(place: Place) -> None:
    with pytest.raises(TableDamagedError, match="Nothing was deleted"):
        drop_table(place.files, Path("/"))
    place.files.create(Path("/log/0.log")).write(b"data")
    with pytest.raises(TableDamagedError, match="Nothing was deleted"):
        drop_table(place.files, Path("/log"))


def in_another_process(attempt: str, directory: Path) -> str:
    """The errors that a program of one line gives there."""
    program = (
        "from pathlib import Path\n"
        "from faircopy.publish.drop import drop_table\n"
        "from faircopy.publish.files import Files\n"
        "from faircopy.publish.table import Table\n"
        f"directory = Path({str(directory)!r})\n{attempt}\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30).stderr


def test_on_a_real_disk(tmp_path: Path) -> None:
    """A second publisher is kept out; a path that a URI must escape; deleting."""
    files, directory = Files(), tmp_path / "plain" / "a b%ü"
    log = GrowingLog(files, tmp_path, [ORDERS])
    table = Table(files, directory, lambda: START_MS)
    for _ in range(20):
        log.append(ORDERS, GOOD, "7.0.1")
        assert table.publish(log.cut(), UPKEEP).rows == 10
    for attempt in ("Table(Files(), directory, lambda: 0)", "drop_table(Files(), directory)"):
        assert "LockedError" in in_another_process(attempt, directory)
    table.close()
    assert in_another_process("Table(Files(), directory, lambda: 0).close()", directory) == ""
    assert read_offsets(files, directory) == {ORDERS: list(range(200))}
    drop_table(files, directory)
    assert list(directory.parent.iterdir()) == []


def test_rows_of_a_topic_that_was_made_again_are_not_mixed_with_those_of_its_predecessor(
    place: Place,
) -> None:
    """Also when the new one has more offsets than the old one had, and after the table is opened anew."""
    place.log.append(ORDERS, [NewRecord(b"old")] * 10)
    place.publish()
    place.files.make_directory(Path("/again"))
    again = GrowingLog(place.files, Path("/again"), [ORDERS], topic_id="f0")
    again.append(ORDERS, [NewRecord(b"new")] * 20)
    cuts = again.cut()
    for _ in range(2):
        with pytest.raises(MixedTopicsError, match="another topic that was called 'orders'"):
            place.publish(cuts)
        assert place.open().held == Held({"orders": {0: 10}}, {"orders": "0f"})
