"""The broker's directory: its lock and its format version.

faircopy-data/
  format.json   {"format": 2, "crc32c": <of "2">}
  lock          held by the running broker, or by a tool that reads the directory from outside
  doubt         marks the directory as unclean: a broker ended because the disk failed (I10), and no later one
                has yet written again what may be lost
  journal/  log/  plain/  state.lmdb/

Only the broker's own user can read the directory, except plain/ if others are allowed to read the tables: the
files that the publisher makes there get the permissions of their directory.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from faircopy.errors import FaircopyError
from faircopy.storage.paths import (
    delete_file,
    exists,
    is_directory,
    list_directory,
    make_directory,
    read_file,
    sync_directory,
    sync_names,
    write_file,
)
from faircopy.storage.system import PRIVATE_DIRECTORY, mounted

FORMAT = 4
OLDEST_FORMAT = 2
"""The oldest format that a start upgrades. An older directory is refused."""
FORMAT_FILE = "format.json"
LOCK_FILE = "lock"
UNCLEAN_MARK = "doubt"
LOCK_WAIT_SECONDS = 1.0
LOCK_POLL_SECONDS = 0.01

# Permissions of the data directory and of plain/, for each choice of who else may read plain tables.
READERS = {"owner": (0o700, 0o700), "group": (0o710, 0o750), "everyone": (0o711, 0o755)}
RWX_BITS = 0o777

log = logging.getLogger(__name__)


class DataDirectoryError(FaircopyError):
    """The data directory can't be used; nothing in it was changed."""


class DirectoryInUse(DataDirectoryError):
    """Another process has locked the data directory: `holder`, as it has noted there."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(
            f"the data directory {path} is in use by another broker (process {holder}): "
            f"stop that one, or choose another with --data-dir"
        )
        self.holder = holder


class DataDirectory:
    """An opened and locked data directory."""

    def __init__(
        self,
        path: Path,
        plain_readers: str = "owner",
        process_id: int | None = None,
        lock_seconds: float = LOCK_WAIT_SECONDS,
    ) -> None:
        """Open and lock the directory, or create it. Raises DataDirectoryError. `plain_readers`: READERS.
        `process_id`: who has locked it; by default this process. Blocks for up to `lock_seconds`.
        """
        self.path = path.absolute()
        self._process_id = os.getpid() if process_id is None else process_id
        self._system = mounted()
        self._prepare()
        self._lock = self._take_lock(lock_seconds)
        try:
            self._format = self._read_or_write_format()
            self._announce_upgrade()
            self._protect(*READERS[plain_readers])
        except BaseException:
            self.close()
            raise

    @property
    def _parts(self) -> tuple[Path, ...]:
        return self.journal, self.log, self.plain, self.state

    @property
    def journal(self) -> Path:
        """The directory of the journals."""
        return self.path / "journal"

    @property
    def log(self) -> Path:
        """The directory of the data logs."""
        return self.path / "log"

    @property
    def plain(self) -> Path:
        """The directory of the plain tables."""
        return self.path / "plain"

    @property
    def state(self) -> Path:
        """The LMDB environment of the state store."""
        return self.path / "state.lmdb"

    # -- format ----------------------------------------------------------------------------------------------

    def _announce_upgrade(self) -> None:
        if self._format.version < FORMAT:
            log.warning(
                "the data directory %s has format %d: this start upgrades it to format %d. Existing data is "
                "not rewritten, but older versions of faircopy can't read the directory afterwards",
                self.path, self._format.version, FORMAT,
            )  # fmt: skip

    def upgrade(self) -> None:
        """Set the format of an older directory to the newest one. Blocks. Call it before anything is appended
        to a journal: until then an older faircopy can still read the directory.
        """
        if self._format.version < FORMAT:
            found, self._format = self._format, self._format._replace(version=FORMAT)
            write_file(self.path / FORMAT_FILE, self._format.encode())
            log.warning(
                "the data directory %s was upgraded from format %d to %d", self.path, found.version, FORMAT
            )

    def sync_names(self) -> None:
        """Make durable what a process that was killed may have left without a durable name. Blocks. Raises
        StorageFailure.
        """
        for part in (self.journal, self.log, self.state):
            sync_names(part)
        sync_directory(self.path)
        # The place of the directory may be another user's, or on a file system without fsync.
        with contextlib.suppress(FaircopyError):
            sync_directory(self.path.parent)

    # -- unclean ends ----------------------------------------------------------------------------------------

    @property
    def _unclean_mark(self) -> Path:
        return self.path / UNCLEAN_MARK

    @property
    def is_unclean(self) -> bool:
        """Whether the directory is unclean: a broker ended because the disk failed. The page cache may count
        bytes as written that are not on disk, so they have to be written again. (After a boot, the machine
        reads what is on disk.)
        """
        return exists(self._unclean_mark)

    def mark_unclean(self) -> None:
        """Mark the directory as unclean, since the disk has failed. The mark does not have to be durable: it
        matters only as long as the page cache lives."""
        with contextlib.suppress(OSError):
            self._system.close(self._system.lock(self._unclean_mark))

    def mark_clean(self) -> None:
        """Remove the mark, since everything was written again."""
        if self.is_unclean:
            delete_file(self._unclean_mark)

    def close(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            self._system.close(self._lock)
            self._lock = -1

    def _prepare(self) -> None:
        try:
            if is_directory(self.path) and not exists(self.path / FORMAT_FILE):
                strange = [
                    child.name for child in list_directory(self.path) if not self._is_unfinished(child)
                ]
                if strange:
                    raise DataDirectoryError(
                        f"{self.path} is not empty and not a faircopy data directory (it holds "
                        f"{strange[0]!r}): choose another with --data-dir"
                    )
            make_directory(self.path)
        except OSError as error:
            raise DataDirectoryError(
                f"can't make or read the data directory {self.path}: {error.strerror}. "
                f"Choose another with --data-dir, or change its owner"
            ) from error

    def _is_unfinished(self, child: Path) -> bool:
        """Whether a broker may have created this before it crashed, without finishing the directory."""
        return child.name in (LOCK_FILE, "format.tmp") or (child in self._parts and not list_directory(child))

    def _take_lock(self, seconds: float) -> int:
        try:
            lock = wait_for_lock(self._system.lock, self.path, seconds)
        except BlockingIOError:
            raise in_use(self.path) from None
        except OSError as error:
            raise DataDirectoryError(
                f"can't write to the data directory {self.path}: {error.strerror}"
            ) from error
        with contextlib.suppress(OSError):  # the process id is a hint for people, and the disk may be full
            self._system.truncate(lock, 0)
            self._system.write(lock, [str(self._process_id).encode()], 0)
        return lock

    def _protect(self, own_mode: int, plain_mode: int) -> None:
        """Keep other users out, even of directories that were made by hand or by an older version."""
        wanted = dict.fromkeys(self._parts, PRIVATE_DIRECTORY) | {self.path: own_mode, self.plain: plain_mode}
        for path, mode in wanted.items():
            found = self._system.permissions(path)
            if found & RWX_BITS != mode:
                self._set_permissions(path, found, mode)

    def _set_permissions(self, path: Path, found: int, mode: int) -> None:
        is_open = found & RWX_BITS & ~mode
        try:
            self._system.set_permissions(path, found & ~RWX_BITS | mode)
        except OSError as error:
            log.warning(
                "%s is open to other users (permissions %o), and can't be closed: %s. Have its owner do: "
                "chmod %o",
                path, found, error.strerror, mode,
            )  # fmt: skip
            return
        if is_open:
            log.warning("%s was open to other users (permissions %o); it is %o now", path, found, mode)

    def _read_or_write_format(self) -> DirectoryFormat:
        path = self.path / FORMAT_FILE
        return read_format(path) if exists(path) else self._write_format(path)

    def _write_format(self, path: Path) -> DirectoryFormat:
        for directory in self._parts:
            make_directory(directory)
        found = DirectoryFormat(FORMAT)
        write_file(path, found.encode())
        return found


class DirectoryFormat(NamedTuple):
    """The content of the format file."""

    version: int

    def encode(self) -> bytes:
        """The exact bytes of the file."""
        checksum = crc32c(str(self.version).encode())
        return json.dumps({"format": self.version, "crc32c": checksum}).encode()


def read_format(path: Path) -> DirectoryFormat:
    """The content of a format file, if this faircopy can read such a directory. Raises DataDirectoryError."""
    try:
        content = read_file(path)
        version = int(json.loads(content)["format"])
        sound = DirectoryFormat(version)
        expected = sound.encode()
    except (FaircopyError, OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DataDirectoryError(f"can't read {path}: {error}. Restore it from a backup") from error
    if version > FORMAT:
        raise DataDirectoryError(
            f"{path.parent} has format {version}, and this faircopy knows formats up to {FORMAT}: install a "
            f"newer faircopy"
        )
    if version < OLDEST_FORMAT:
        raise DataDirectoryError(
            f"{path.parent} has format {version}, which no release had, and this faircopy reads formats from "
            f"{OLDEST_FORMAT} on: choose a new directory with --data-dir. To keep the messages, start the "
            f"faircopy that made the directory, and copy them from there to a new broker, for example with "
            f"Kafka's MirrorMaker. (A backup of the directory has the same format, so it does not help.)"
        )
    if content != expected:
        raise DataDirectoryError(
            f"{path} is damaged: it does not match its checksum. Restore it from a backup"
        )
    return sound


@contextlib.contextmanager
def hold_unchanged(path: Path) -> Iterator[None]:
    """Keep brokers out of a data directory in the block; nothing is changed. Raises DataDirectoryError."""
    if not exists(path / FORMAT_FILE):
        raise DataDirectoryError(f"{path} is not a faircopy data directory: it has no {FORMAT_FILE}")
    try:
        lock = wait_for_lock(mounted().lock_shared, path)
    except FileNotFoundError:
        yield  # no broker has ever run here
        return
    except BlockingIOError:
        raise in_use(path) from None
    except OSError as error:
        raise DataDirectoryError(f"can't read the data directory {path}: {error.strerror}") from error
    try:
        yield
    finally:
        mounted().close(lock)


def wait_for_lock(lock: Callable[[Path], int], path: Path, seconds: float = LOCK_WAIT_SECONDS) -> int:
    """Lock a data directory. Blocks for up to so many seconds. Raises BlockingIOError, OSError.

    If a broker is killed while it starts its publisher, that process holds the lock until it has become
    another program. A broker that is started at once must not mistake it for a running broker.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return lock(path / LOCK_FILE)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
        time.sleep(LOCK_POLL_SECONDS)


def in_use(path: Path) -> DirectoryInUse:
    """The error for a data directory whose lock another process holds."""
    holder = read_file(path / LOCK_FILE)[:20].decode("ascii", "replace").strip()
    return DirectoryInUse(path, holder or "unknown")
