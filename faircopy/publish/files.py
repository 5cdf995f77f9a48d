"""The publisher's only access to the disk, so that tests can substitute a failing one.

`Files` has the primitives; the functions below it build durable steps from them. All of them block.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from faircopy.errors import FaircopyError
from faircopy.publish import names
from faircopy.storage.system import sync_all

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class FsyncError(FaircopyError):
    """An fsync failed: written data may be lost although it can be read. The process must end."""


class LockedError(FaircopyError):
    """Another process has the lock."""


def permissions_in(directory: os.stat_result) -> int:
    """The permissions of new files in a directory: others may do with them what they may do with it."""
    return directory.st_mode & 0o777


def give_to_owner_of(directory: os.stat_result, made: int | Path) -> None:
    """Let the broker read files that root makes, with a command, in a directory of the broker's user."""
    if os.geteuid() == 0 and directory.st_uid != 0:
        os.chown(made, directory.st_uid, directory.st_gid)


class NewFile(io.RawIOBase):
    """A file that is being written, front to back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        parent = path.parent.stat()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, permissions_in(parent) & 0o666)
        give_to_owner_of(parent, self._descriptor)
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write all of `data`."""
        left = memoryview(data).cast("B")
        while left:
            left = left[os.write(self._descriptor, left) :]
        written = memoryview(data).nbytes
        self.size += written
        return written

    def tell(self) -> int:
        return self.size

    def sync(self) -> None:
        """Make the written bytes durable. Raises FsyncError."""
        _fsync(self._descriptor, self._path)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


class Lock:
    """Keeps other processes out until it is closed, or until this process ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        give_to_owner_of(path.parent.stat(), self._descriptor)
        try:
            os.lockf(self._descriptor, os.F_TLOCK, 0)
        except (BlockingIOError, PermissionError):
            self.close()
            raise LockedError(
                f"locking {path}: another process has it; it ends once its broker has"
            ) from None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


class Files:
    """The primitives. Content is durable when its file is synced, and a name when its directory is.

    Raises OSError, or FsyncError for a failed sync.
    """

    def list_directory(self, directory: Path) -> dict[str, int]:
        """Names in a directory, and their sizes in bytes; empty if there is no such directory."""
        try:
            with os.scandir(directory) as entries:
                return {entry.name: entry.stat().st_size for entry in entries}
        except FileNotFoundError:
            return {}

    def is_directory(self, path: Path) -> bool:
        """Whether there is a directory at `path`."""
        return path.is_dir()

    def read(self, path: Path, position: int = 0, size: int = -1) -> bytes:
        """`size` bytes from `position`, or all bytes to the end; fewer if the file ends before."""
        with path.open("rb", buffering=0) as file:
            file.seek(position)
            return _read_fully(file, size) if size >= 0 else file.readall()

    def open_to_read(self, path: Path) -> BinaryIO:
        """A file, open for reading, unbuffered. Raises OSError."""
        return path.open("rb", buffering=0)

    def create(self, path: Path) -> NewFile:
        """A new file, which replaces an existing one."""
        return NewFile(path)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file, replacing a file of the new name; durable when the directory is synced."""
        old.rename(new)

    def delete(self, path: Path) -> None:
        """Delete a file; nothing happens if it does not exist."""
        path.unlink(missing_ok=True)

    def make_directory(self, path: Path) -> None:
        """Make a directory with the permissions and the owner of its parent. Raises FileExistsError."""
        parent = path.parent.stat()
        path.mkdir(permissions_in(parent))
        give_to_owner_of(parent, path)

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        path.rmdir()

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _fsync(descriptor, path)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> Lock:
        """Lock the file. Raises LockedError."""
        return Lock(path)

    def is_locked(self, path: Path) -> bool:
        """Whether another process has locked the file; nothing is changed."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            os.lockf(descriptor, os.F_TEST, 0)
        except (BlockingIOError, PermissionError):
            return True
        finally:
            os.close(descriptor)
        return False


def _fsync(descriptor: int, path: Path) -> None:
    try:
        sync_all(descriptor)
    except OSError as error:
        raise FsyncError(f"fsync of {path}: {error.strerror}; see the system's log for the disk") from error


def _read_fully(file: io.FileIO, size: int) -> bytes:
    data = file.read(size)
    while data and len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def write_durably(files: Files, path: Path, content: bytes) -> None:
    """Durably write `content` to `path`; after a crash it holds all of it, or its old content."""
    unfinished = path.with_name(names.temporary(path.name))
    with files.create(unfinished) as file:
        file.write(content)
        file.sync()
    rename_durably(files, unfinished, path)


def rename_durably(files: Files, old: Path, new: Path) -> None:
    """Rename within a directory."""
    files.rename(old, new)
    files.sync_directory(new.parent)


def make_directories(files: Files, path: Path) -> None:
    """Create a directory and its parents, durably; nothing happens if it exists."""
    if files.is_directory(path):
        return
    make_directories(files, path.parent)
    files.make_directory(path)
    files.sync_directory(path.parent)


def delete_tree(files: Files, directory: Path) -> None:
    """Delete a directory and its content; nothing happens if it does not exist."""
    if not files.is_directory(directory):
        return
    for name in files.list_directory(directory):
        child = directory / name
        if files.is_directory(child):
            delete_tree(files, child)
        else:
            files.delete(child)
    files.remove_directory(directory)
