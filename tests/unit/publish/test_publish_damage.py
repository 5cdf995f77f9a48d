"""Damage to the files of a table is told when it is opened; what others put there is left alone."""

from __future__ import annotations

import pytest

from faircopy.publish.log_directory import TableDamagedError
from faircopy.publish.table_state import OtherFormatError
from tests.unit.publish.table_bench import TABLE, Place, some_table


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
    good = state.content
    for other, message in ((2, r"format 2.*Upgrade"), (0, r"format 0.*made again from the log")):
        state.content = good.replace(b'"format": 1', b'"format": %d' % other)
        with pytest.raises(OtherFormatError, match=message):
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
