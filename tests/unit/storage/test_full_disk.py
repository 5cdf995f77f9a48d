"""A file that can't be made for lack of space is no reason to end the broker: it waits for space."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from faircopy.storage.failures import NoSpace, StorageFailure, WriteFailure
from faircopy.storage.file import File
from faircopy.storage.system import System, mount


class Refusing(System):
    """Opens nothing."""

    def __init__(self, code: int) -> None:
        self._code = code

    def open(self, path: Path, flags: int) -> int:
        raise OSError(self._code, os.strerror(self._code), str(path))


def test_no_space_for_a_new_file(tmp_path: Path) -> None:
    with mount(Refusing(errno.ENOSPC)), pytest.raises(NoSpace):
        File(tmp_path / "new", create=True)


def test_a_new_file_that_fails_otherwise_leaves_the_directory_in_doubt(tmp_path: Path) -> None:
    with mount(Refusing(errno.EIO)), pytest.raises(WriteFailure):
        File(tmp_path / "new", create=True)


def test_a_file_that_can_not_be_read_is_no_failed_write(tmp_path: Path) -> None:
    with mount(Refusing(errno.EIO)), pytest.raises(StorageFailure) as refused:
        File(tmp_path / "old")
    assert not isinstance(refused.value, WriteFailure)
