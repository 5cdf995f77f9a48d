"""The broker's directory: its lock, its format version, its identity.

faircopy-data/
  format.json   {"format": 1, "cluster": "<id>"}
  lock          held by the broker that runs
  doubt         there when a broker ended because the disk failed (I10), until one has written again what may be lost
  journal/  log/  plain/  state.lmdb/
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from faircopy.errors import FaircopyError
from faircopy.storage.files import (
    delete_file,
    exists,
    is_directory,
    list_directory,
    make_directory,
    read_file,
    write_file,
)
from faircopy.storage.system import mounted

FORMAT = 1


class DataDirectoryError(FaircopyError):
    """The data directory can't be used; nothing in it was changed."""


class DataDirectory:
    """An opened and locked data directory."""

    def __init__(self, path: Path, new_id: Callable[[], UUID] = uuid4) -> None:
        self.path = path.absolute()
        self._system = mounted()
        self._new_id = new_id
        self._prepare()
        self._lock = self._take_lock()
        try:
            self.cluster_id = self._read_or_write_format()
        except BaseException:
            self.close()
            raise

    @property
    def _parts(self) -> tuple[Path, ...]:
        return self.journal, self.log, self.plain, self.state

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

    # -- doubt ---------------------------------------------------------------------------------------------------

    @property
    def _doubt(self) -> Path:
        return self.path / "doubt"

    @property
    def is_in_doubt(self) -> bool:
        """Whether a broker ended because the disk failed. What it wrote may be in the page cache only, where it counts
        as written, and has to be written again. (A machine that starts anew reads what is on disk.)
        """
        return exists(self._doubt)

    def note_doubt(self) -> None:
        """The disk has failed. The note itself need not be durable: it matters as long as the page cache lives."""
        with contextlib.suppress(OSError):
            self._system.close(self._system.lock(self._doubt))

    def end_doubt(self) -> None:
        """All was written again."""
        if self.is_in_doubt:
            delete_file(self._doubt)

    def close(self) -> None:
        """Give the lock back."""
        if self._lock >= 0:
            self._system.close(self._lock)
            self._lock = -1

    def _prepare(self) -> None:
        try:
            if is_directory(self.path) and not exists(self.path / "format.json"):
                strange = [child.name for child in list_directory(self.path) if not self._is_unfinished(child)]
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

    def _is_unfinished(self, child: Path) -> bool:
        """Whether a broker may have made this, and then a crash came before it had finished the directory."""
        return child.name in ("lock", "format.tmp") or (child in self._parts and not list_directory(child))

    def _take_lock(self) -> int:
        path = self.path / "lock"
        try:
            lock = self._system.lock(path)
        except BlockingIOError:
            holder = read_file(path)[:20].decode("ascii", "replace").strip()
            raise DataDirectoryError(
                f"the data directory {self.path} is in use by another broker (process {holder or 'unknown'}): "
                f"stop that one, or choose another with --data-dir"
            ) from None
        except OSError as error:
            raise DataDirectoryError(f"can't write to the data directory {self.path}: {error.strerror}") from error
        self._system.truncate(lock, 0)
        self._system.write(lock, [str(os.getpid()).encode()], 0)
        return lock

    def _read_or_write_format(self) -> str:
        path = self.path / "format.json"
        if not exists(path):
            return self._write_format(path)
        try:
            found = json.loads(read_file(path))
            version, cluster = int(found["format"]), str(found["cluster"])
        except (FaircopyError, OSError, ValueError, KeyError, TypeError) as error:
            raise DataDirectoryError(f"can't read {path}: {error}. Restore it from a backup") from error
        if version > FORMAT:
            raise DataDirectoryError(
                f"{self.path} has format {version}, this faircopy knows formats up to {FORMAT}: install a newer "
                f"faircopy"
            )
        return cluster

    def _write_format(self, path: Path) -> str:
        for directory in self._parts:
            make_directory(directory)
        cluster = self._new_id().hex[:22]
        write_file(path, json.dumps({"format": FORMAT, "cluster": cluster}).encode())
        return cluster
