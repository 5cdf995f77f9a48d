"""A table is dropped as a whole, and nothing is that is no table."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.publish.drop import drop_table
from faircopy.publish.log_directory import TableDamagedError
from tests.unit.publish.table_bench import TABLE, Place, some_table


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
