"""On one machine, whoever holds the lock on its file lives (B14)."""

from __future__ import annotations

from pathlib import Path

from faircopy.arbiter import lmdb_backend
from faircopy.storage.system import mounted


def test_a_lock_that_is_held_is_not_free(tmp_path: Path) -> None:
    path = tmp_path / "one"
    assert lmdb_backend.is_free(path), "its process has deleted it at its end"
    lock = mounted().lock(path)
    assert not lmdb_backend.is_free(path)
    mounted().close(lock)
    assert lmdb_backend.is_free(path), "its process was killed"
