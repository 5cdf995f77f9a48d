"""The calls to the operating system that touch files, all in one place, so that tests can substitute a lying
disk; and all that Linux alone has, each with what other systems get in its place (`storage/fallbacks.py`).

`System` is the real one. Its methods raise OSError, like the calls themselves. All other code uses
`storage/file.py` and `storage/paths.py`, which say what was being done and raise errors of ours
(`storage/failures.py`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from faircopy.storage import fallbacks

Buffer = bytes | bytearray | memoryview

# The broker's files are for its own user, whatever the umask.
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


class Status(NamedTuple):
    """The status of a path; `modified_ns` is by the wall clock."""

    is_directory: bool
    size: int
    modified_ns: int


class Space(NamedTuple):
    """The size of the disk that holds a path, and how much of it is free for us."""

    total_bytes: int
    usable_bytes: int


class System:
    """The machine's real operating system. Files are given by descriptors; positions and sizes are bytes."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor of the file, which no child process inherits. Raises OSError, as all methods here."""
        return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def size(self, descriptor: int) -> int:
        """The size of a file in bytes."""
        return os.fstat(descriptor).st_size

    def write(self, descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        """Write some of the bytes, and return how many."""
        if len(buffers) == 1:
            return os.pwrite(descriptor, buffers[0], position)
        if not hasattr(os, "pwritev"):
            return fallbacks.write(descriptor, buffers, position)
        return os.pwritev(descriptor, buffers, position)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """Some of the bytes; none at the end of the file."""
        return os.pread(descriptor, size, position)

    def read_cached(self, descriptor: int, buffer: bytearray, position: int) -> int:
        """Read without waiting for the disk. Raises OSError with ENOSYS if that can't be done."""
        if not hasattr(os, "RWF_NOWAIT"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return os.preadv(descriptor, [buffer], position, os.RWF_NOWAIT)

    def send(self, descriptor: int, socket_descriptor: int, position: int, size: int) -> int:
        """Send some of the bytes to a socket."""
        if sys.platform != "linux" or not hasattr(os, "sendfile"):
            return fallbacks.send(descriptor, socket_descriptor, position, size)
        return os.sendfile(socket_descriptor, descriptor, position, size)

    def allocate(self, descriptor: int, end: int) -> None:
        """Reserve disk space for the file up to byte `end`; the file grows to that size."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, end)
        else:
            fallbacks.allocate(descriptor, end)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file, or let it grow, to this size."""
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        if hasattr(os, "fdatasync"):
            os.fdatasync(descriptor)
        else:
            sync_all(descriptor)

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync_all(descriptor)
        finally:
            os.close(descriptor)

    def make_directory(self, path: Path) -> None:
        """Create one directory, which only its owner may read."""
        path.mkdir(PRIVATE_DIRECTORY)

    def permissions(self, path: Path) -> int:
        """The mode bits of a file or directory."""
        return stat.S_IMODE(path.stat().st_mode)

    def set_permissions(self, path: Path, mode: int) -> None:
        """Set the mode bits of a file or directory."""
        path.chmod(mode)

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        path.rmdir()

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or directory; an existing file of the new name is replaced."""
        old.rename(new)

    def link(self, old: Path, new: Path) -> None:
        """Give a file an additional name, in any directory of the same file system."""
        new.hardlink_to(old)

    def delete(self, path: Path) -> None:
        path.unlink()

    def list(self, path: Path) -> list[str]:
        """The names in a directory, in no particular order."""
        return os.listdir(path)  # noqa: PTH208 - a path for each name costs more than the names

    def status(self, path: Path) -> Status | None:
        """The status of a path; None if it does not exist."""
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Status(stat.S_ISDIR(found.st_mode), found.st_size, found.st_mtime_ns)

    def space(self, path: Path) -> Space:
        """The size of the file system of `path`, and how much of it is free for users other than root."""
        disk = os.statvfs(path)
        return Space(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)

    def lock(self, path: Path) -> int:
        """Create the file if necessary, and lock others out until it is closed. Raises BlockingIOError."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def lock_shared(self, path: Path) -> int:
        """Lock an existing file against other processes, until it is closed. Raises BlockingIOError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


SEND_MORE = getattr(socket, "MSG_MORE", 0)
"""Says of what is sent that more follows, so that they share a packet; 0 where that can't be said."""


def sync_all(descriptor: int) -> None:
    """Make a file, or the names in a directory, durable, against a loss of power too. Raises OSError."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fallbacks.flush_drive(descriptor)
    else:
        os.fsync(descriptor)


def uptime_ns() -> int:
    """Nanoseconds since the machine was booted, including those in which it was suspended. On a Mac, which
    has no CLOCK_BOOTTIME, CLOCK_MONOTONIC counts these, too.
    """
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def read_proc(name: str) -> str | None:
    """The text of a file below /proc; None if the system has none of this name."""
    try:
        return Path("/proc", name).read_text()
    except OSError:
        return None


_mounted = System()


def mounted() -> System:
    """The system that is in use."""
    return _mounted


@contextlib.contextmanager
def mount(system: System) -> Iterator[None]:
    """Open all files on another system within the block. For tests: this affects the whole process."""
    global _mounted
    before, _mounted = _mounted, system
    try:
        yield
    finally:
        _mounted = before
