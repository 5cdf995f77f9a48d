"""What readers see of a table: the rows of its log, in order, in files encoded as promised."""

from __future__ import annotations

import io
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.publish import data_file
from faircopy.publish.schema import SCHEMA
from faircopy.wire.records import NewRecord, build_batch
from tests.unit.publish.publish_oracle import logged, loop_over, message_lists, recompressed
from tests.unit.publish.published_log import Partition
from tests.unit.publish.table_bench import GOOD, ORDERS, START_MS, TABLE, Place
from tests.unit.publish.table_reader import listed, live_contents, read_table


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
    assert statistics == {"topic", "partition", "offset", "timestamp"}
    for name in ("offset", "timestamp"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings


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


def test_times_in_the_log_never_go_back(place: Place) -> None:
    for now_ms in (START_MS, START_MS - 5000, START_MS + 5000, 0):
        place.now_ms = now_ms
        place.log.append(ORDERS, GOOD)
        place.publish()
    times = [line["modificationTime"] for line in listed(place.files, TABLE)]
    assert times == [START_MS] * 3 + [START_MS + 5000] * 2
