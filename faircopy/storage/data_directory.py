"""The broker's directory: its lock, its format version, its identity.

faircopy-data/
  format.json   {"format": 1, "cluster": "<id>"}
  lock          held by the broker that runs
  journal/  log/  plain/  state.lmdb/
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.storage.files import make_directory, sync_directory

FORMAT = 1


class DataDirectoryError(FaircopyError):
    """The data directory can't be used; nothing in it was changed."""


class DataDirectory:
    """An opened and locked data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._prepare()
        self._lock = self._take_lock()
        try:
            self.cluster_id = self._read_or_write_format()
        except BaseException:
            self.close()
            raise

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def plain(self) -> Path:
        return self.path / "plain"

    @property
    def state(self) -> Path:
        return self.path / "state.lmdb"

    def close(self) -> None:
        """Give the lock back."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _prepare(self) -> None:
        try:
            if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / "format.json").exists():
                strange = [child.name for child in self.path.iterdir() if child.name != "lock"]
                if strange:
                    raise DataDirectoryError(
                        f"{self.path} is not empty and not a faircopy data directory (it holds {strange[0]!r}): "
                        f"choose another with --data-dir"
                    )
            make_directory(self.path)
        except OSError as error:
            raise DataDirectoryError(
                f"can't make or read the data directory {self.path}: {error.strerror}. "
                f"Choose another with --data-dir, or change its owner"
            ) from error

    def _take_lock(self) -> int:
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DataDirectoryError(f"can't write to the data directory {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
            os.close(lock)
            raise DataDirectoryError(
                f"the data directory {self.path} is in use by another broker (process {holder or 'unknown'}): "
                f"stop that one, or choose another with --data-dir"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        return lock

    def _read_or_write_format(self) -> str:
        path = self.path / "format.json"
        if not path.exists():
            return self._write_format(path)
        try:
            found = json.loads(path.read_text())
            version, cluster = int(found["format"]), str(found["cluster"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataDirectoryError(f"can't read {path}: {error}. Restore it from a backup") from error
        if version > FORMAT:
            raise DataDirectoryError(
                f"{self.path} has format {version}, this faircopy knows formats up to {FORMAT}: install a newer "
                f"faircopy"
            )
        return cluster

    def _write_format(self, path: Path) -> str:
        for directory in (self.journal, self.log, self.plain, self.state):
            directory.mkdir(exist_ok=True)
        cluster = uuid.uuid4().hex[:22]
        temporary = path.with_suffix(".tmp")
        with temporary.open("w") as file:
            json.dump({"format": FORMAT, "cluster": cluster}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_directory(self.path)
        return cluster
