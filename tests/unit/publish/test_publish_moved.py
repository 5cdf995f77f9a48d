"""A table that was moved to another directory is not opened before it is relocated."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.publish.log_directory import TableDamagedError, TableMovedError
from faircopy.publish.relocate import relocate
from tests.unit.publish.table_bench import GOOD, ORDERS, TABLE, some_table


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
    missing = place.table.live[1].name
    place.files.rename(TABLE, place.directory)
    del place.files.directory(place.directory).names[missing]
    place.files.locked.clear()
    with pytest.raises(TableDamagedError, match="is missing"):
        relocate(place.files, place.directory)
