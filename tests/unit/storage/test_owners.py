"""Files whose owner is another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faircopy.publish.files import Files, Lock
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.system import System, mount
from tests.requirements import missing


def test_a_directory_that_is_not_ours_to_close_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class NotOwned(System):
        def set_permissions(self, path: Path, mode: int) -> None:
            raise PermissionError(1, "Operation not permitted")

    (tmp_path / "data").mkdir(0o755)
    with mount(NotOwned()):
        DataDirectory(tmp_path / "data").close()
    assert f"{tmp_path / 'data'} is open to other users (permissions 755), and can't be closed" in caplog.text


def test_what_root_makes_in_a_table_is_the_brokers(tmp_path: Path) -> None:
    """As with `sudo faircopy tables relocate`."""
    if os.geteuid() != 0:
        missing("only root can make files for others")
    table = tmp_path / "table"
    table.mkdir(0o700)
    os.chown(table, 12_345, 23_456)
    files = Files()
    files.make_directory(table / "_spark_metadata")
    files.create(table / "_spark_metadata" / "0").close()
    Lock(table / "lock").close()
    made = [table / "_spark_metadata", table / "_spark_metadata" / "0", table / "lock"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(12_345, 23_456)}
    assert [oct(path.stat().st_mode & 0o777) for path in made] == ["0o700", "0o600", "0o600"]
