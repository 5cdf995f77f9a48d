"""The Delta log: what is written is read, it follows Spark's log, and a damaged one is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import compaction, delta_log, names
from faircopy.publish.delta_directory import read_delta_log
from faircopy.publish.delta_log import DeltaFormatError, LastCheckpoint, Snapshot
from faircopy.publish.file_content import Content
from faircopy.publish.schema import SCHEMA
from tests.many import many
from tests.unit.publish.table_bench import START_MS, TABLE, Place, publish_days
from tests.unit.publish.table_reader import delta_contents, offsets_in

LOG = TABLE / "_delta_log"

file_names = st.sampled_from([names.published(n, [(0, 9)]) for n in range(9)] + [names.merged(47, 0)])
adds = st.builds(
    lambda name, size, rows: delta_log.add(name, size, START_MS, Content(rows, {"o": {0: 9}}), is_new=True),
    file_names,
    st.integers(0, 2**50),
    st.integers(0, 2**40),
)
removes = st.builds(lambda name: delta_log.remove(name, START_MS, is_gone=True), file_names)
METADATA = delta_log.metadata("/plain/orders", SCHEMA, START_MS)


@given(many(adds | removes, 30))
def test_versions_and_checkpoints_come_back(actions: list[Any]) -> None:
    assert delta_log.parse_version(delta_log.format_version([METADATA, *actions])) == [METADATA, *actions]
    snapshot = delta_log.applied(None, [delta_log.PROTOCOL, METADATA, *actions])
    assert delta_log.parse_checkpoint(delta_log.format_checkpoint(snapshot)) == snapshot
    expected: dict[str, Any] = {}
    for action in actions:
        (kind,) = action
        name = action[kind]["path"].replace("%3D", "=")
        expected |= {name: action} if kind == "add" else {}
        if kind == "remove":
            expected.pop(name, None)
    assert snapshot == Snapshot(METADATA, expected)


@given(st.integers(0, 2**60), st.integers(0, 2**30), st.integers(0, 2**32 - 1))
def test_last_checkpoints_come_back(version: int, size: int, checksum: int) -> None:
    last = LastCheckpoint(version, size, checksum)
    assert delta_log.parse_last_checkpoint(delta_log.format_last_checkpoint(last)) == last


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"7", b"{}", b'{"other": {}}', b'{"add": 7}', b'{"add": {"path": 7}}', b"\xff"]
)
def test_damaged_versions(content: bytes) -> None:
    with pytest.raises(DeltaFormatError):
        delta_log.applied(None, delta_log.parse_version(content))
    with pytest.raises(DeltaFormatError):
        delta_log.parse_last_checkpoint(content)
    with pytest.raises(DeltaFormatError):
        delta_log.parse_checkpoint(content)


def test_the_schema_is_deltas() -> None:
    schema = delta_log.metadata("/t", SCHEMA, START_MS)["metaData"]["schemaString"]
    assert '{"name":"timestamp","type":"timestamp","nullable":true,"metadata":{}}' in schema
    assert '{"name":"partition","type":"integer"' in schema


def delta_offsets(place: Place) -> dict[tuple[str, int], list[int]]:
    found = offsets_in(delta_contents(place.files, TABLE))
    return {partition: sorted(offsets) for partition, offsets in found.items()}


def test_it_lists_what_sparks_log_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    monkeypatch.setattr(delta_log, "CHECKPOINT_INTERVAL", 10)
    place = Place([("orders", 0), ("audit", 1)])
    for _ in range(9):
        publish_days(place, 7)
        assert delta_offsets(place) == place.offsets()
        place.open()
    found = place.files.list_directory(LOG)
    assert len(found) < 30  # what is before the last but one checkpoint is gone
    assert len(delta_contents(place.files, TABLE)) < 25


@pytest.mark.parametrize("damage", ["a version", "a version is missing", "the checkpoint", "its name", "all"])
def test_a_damaged_log_is_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    monkeypatch.setattr(delta_log, "CHECKPOINT_INTERVAL", 10)
    place = Place()
    publish_days(place, 15)
    directory = place.files.directory(LOG)
    match damage:
        case "a version":
            place.files.file(LOG / delta_log.version_name(12)).content = b"{"
        case "a version is missing":
            del directory.names[delta_log.version_name(12)]
        case "the checkpoint":
            place.files.file(LOG / delta_log.checkpoint_name(9)).content = b"PAR1"
        case "its name":
            place.files.file(LOG / delta_log.LAST_CHECKPOINT).content = b"{}"
        case "all":
            del place.files.directory(TABLE).names["_delta_log"]
    place.open()
    assert ("made again" in caplog.text) == (damage != "all")
    assert delta_offsets(place) == place.offsets()
    publish_days(place, 1)
    assert delta_offsets(place) == place.offsets()
    assert read_delta_log(place.files, LOG)[0] == 1


def test_tables_do_not_share_an_id() -> None:
    ids = {
        delta_log.metadata(str(Path("/plain") / name), SCHEMA, START_MS)["metaData"]["id"] for name in "ab"
    }
    assert len(ids) == 2
