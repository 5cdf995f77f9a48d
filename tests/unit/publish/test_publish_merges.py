"""Merges: no row is lost or there twice, streams notice nothing, and a failed merge stops nothing."""

from __future__ import annotations

import io
import logging

import pyarrow.parquet as pq
import pytest

from faircopy.publish import compaction, merge
from tests.unit.publish.table_bench import TABLE, Place, publish_days
from tests.unit.publish.table_reader import listed, live_contents


@pytest.mark.parametrize("band_bytes", [1, 2000, 32 * 1024 * 1024])
def test_merged_files_are_sorted_and_complete(monkeypatch: pytest.MonkeyPatch, band_bytes: int) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    monkeypatch.setattr(merge, "BAND_BYTES", band_bytes)
    place = Place([("orders", 1), ("orders", 0), ("audit", 0)])
    publish_days(place, 80)
    lines = listed(place.files, TABLE)
    merged = [line for line in lines if line["modificationTime"] < 0]
    assert len(merged) > 4 and len(live_contents(place.files, TABLE)) < 40
    table = pq.read_table(io.BytesIO(live_contents(place.files, TABLE)[1]))
    keys = list(zip(*(table.column(n).to_pylist() for n in ("topic", "partition", "offset")), strict=True))
    assert keys == sorted(keys) and len(keys) > 40
    assert table.slice(0, 1).to_pylist()[0]["headers"] is None
    assert place.offsets() == {p: list(range(end)) for p, end in place.log.ends.items()}
    assert place.open().held.next_offsets == {"orders": {0: 159, 1: 159}, "audit": {0: 159}}


def test_streams_keep_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream finds is the same with merges and without, and so are the files on disk."""
    place = Place()
    publish_days(place, 60)
    published = [line["path"] for line in listed(place.files, TABLE)]
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    publish_days(place, 16)
    lines = [line for line in listed(place.files, TABLE) if line["modificationTime"] >= 0]
    assert [line["path"] for line in lines][: len(published)] == published
    assert len([line for line in lines if line["size"] == 0]) > 50


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
