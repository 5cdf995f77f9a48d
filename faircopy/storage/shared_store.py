"""A state store that several processes of one machine have open at the same time.

LMDB lets one of them write at a time, and a process that is killed in a write leaves nothing of it. The check
of the file is for whoever opens it first, since it must not change meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import lmdb

from faircopy.errors import FaircopyError
from faircopy.storage.paths import make_directory
from faircopy.storage.state_store import StateStore, StateStoreFailure
from faircopy.storage.system import mounted

LOCK_FILE = "open"  # held shared by all that have the store open, and exclusively by who checks it
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01


class StoreInUse(FaircopyError):
    """Another process has been checking the store for too long."""


class SharedStore(StateStore):
    """The store, as one of the processes has it open."""

    _lock = -1

    def _check(self) -> None:
        make_directory(self._path)
        path = self._path / LOCK_FILE
        try:
            alone = mounted().lock(path)
        except BlockingIOError:
            pass
        else:
            try:
                super()._check()
            finally:
                mounted().close(alone)
        self._lock = wait_for(mounted().lock_shared, path)

    def forget_dead_readers(self) -> None:
        """Free what processes that were killed have left in LMDB's table of readers."""
        try:
            self._environment.reader_check()
        except lmdb.Error as error:
            raise StateStoreFailure(f"checking the readers of {self._path}: {error}") from error

    def close(self) -> None:
        super().close()
        if self._lock >= 0:
            mounted().close(self._lock)
            self._lock = -1


def wait_for(lock: Callable[[Path], int], path: Path) -> int:
    """Take a lock, once who holds it has let go. Blocks. Raises StoreInUse."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return lock(path)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreInUse(
                    f"another process has been checking {path.parent} for {WAIT_SECONDS:.0f} s: wait for it, "
                    f"or end it"
                ) from None
            time.sleep(POLL_SECONDS)
