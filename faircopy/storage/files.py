"""Files and directories, as the journals and logs need them.

Every function may block; callers decide on which thread. Sizes and positions are bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from faircopy.errors import FaircopyError

Buffer = bytes | bytearray | memoryview

MAX_BUFFERS_PER_WRITE = 1024  # IOV_MAX of Linux


class StorageFailure(FaircopyError):
    """The operating system refused a read, a write or an fsync. Whether a write took effect is unknown."""


class NoSpace(StorageFailure):
    """The disk, or the quota, is full. Nothing was written."""


class NotCached(Exception):
    """The bytes are not in the page cache: read them on a thread. Never leaves the storage callers."""


class File:
    """One open file. Closed when the last reference goes, so a reader never loses it to a deletion."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        flags = os.O_RDONLY if read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        self.path = path
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise failure(f"opening {path}", error) from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def write(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write all of `buffers`, one after the other, from `position` on; return the bytes written."""
        try:
            if len(buffers) == 1:
                written = os.pwrite(self._descriptor, buffers[0], position)
            else:
                written = os.pwritev(self._descriptor, buffers[:MAX_BUFFERS_PER_WRITE], position)
            total = sum(map(len, buffers))
            if written < total:
                self._write_rest(buffers, written, position)
        except OSError as error:
            raise failure(f"writing to {self.path} at {position}", error) from error
        return total

    def _write_rest(self, buffers: Sequence[Buffer], written: int, position: int) -> None:
        """Finish a write that the system cut short, or that has more buffers than one call takes."""
        skip = written
        rest: list[memoryview] = []
        for buffer in buffers:
            if skip >= len(buffer):
                skip -= len(buffer)
                continue
            rest.append(memoryview(buffer)[skip:])
            skip = 0
        at = position + written
        while rest:
            count = os.pwritev(self._descriptor, rest[:MAX_BUFFERS_PER_WRITE], at)
            at += count
            while rest and count >= len(rest[0]):
                count -= len(rest.pop(0))
            if rest and count:
                rest[0] = rest[0][count:]

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        try:
            data = os.pread(self._descriptor, size, position)
            while 0 < len(data) < size:
                more = os.pread(self._descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise failure(f"reading {self.path} at {position}", error) from error
        return data

    def read_cached(self, size: int, position: int) -> bytes:
        """As `read`, but only from the page cache; raises NotCached rather than wait for the disk."""
        buffer = bytearray(size)
        try:
            count = os.preadv(self._descriptor, [buffer], position, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS):
                raise NotCached from None
            raise failure(f"reading {self.path} at {position}", error) from error
        if count == size:
            return bytes(buffer) if size <= 64 else buffer  # type: ignore[return-value]
        if count + position < self.size():
            raise NotCached
        return bytes(buffer[:count])

    def send(self, socket_descriptor: int, position: int, size: int) -> int:
        """Have the kernel send up to `size` bytes to a socket, uncopied (sendfile); return how many it took.

        Waits for the disk, never for the socket: raises BlockingIOError where that is full, ConnectionError where it
        is closed, StorageFailure where the file can't be read.
        """
        try:
            sent = os.sendfile(socket_descriptor, self._descriptor, position, size)
        except (BlockingIOError, ConnectionError):
            raise
        except OSError as error:
            raise failure(f"sending {size} bytes of {self.path} at {position}", error) from error
        if not sent:
            raise StorageFailure(f"{self.path} ends before byte {position + size}, which was to be sent")
        return sent

    def preallocate(self, end: int) -> None:
        """Reserve disk space up to `end`, so that later writes can neither run out of it nor change the size."""
        try:
            os.posix_fallocate(self._descriptor, 0, end)
        except OSError as error:
            raise failure(f"reserving {end} bytes for {self.path}", error) from error

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise failure(f"cutting {self.path} at {size}", error) from error

    def sync(self) -> None:
        """Make the file's bytes durable. After an error the file must not be used again (I10)."""
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise failure(f"fdatasync of {self.path}", error) from error


class FileRange:
    """Bytes of a file that need not be read: they can be sent as they lie there."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size


def failure(doing: str, error: OSError) -> StorageFailure:
    """What to raise for an error of the operating system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(f"{doing}: no space is left; free some, and the broker goes on by itself")
    return StorageFailure(f"{doing}: {error.strerror or error}")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: needed after a file in it was made, renamed or deleted."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise failure(f"fsync of directory {path}", error) from error
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, durably. Nothing happens if it is there."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    sync_directory(path.parent)


def delete_file(path: Path) -> None:
    """Delete a file; nothing happens if it is gone already."""
    path.unlink(missing_ok=True)


def rename_file(old: Path, new: Path) -> None:
    """Give a file another name in its directory; the caller makes the name durable."""
    old.rename(new)


def delete_tree(path: Path) -> None:
    """Delete a directory of ours with all that is in it; nothing happens if it is gone already."""
    if not path.is_dir():
        return
    for child in path.iterdir():
        if child.is_dir() and not child.is_symlink():
            delete_tree(child)
        else:
            child.unlink(missing_ok=True)
    path.rmdir()
    sync_directory(path.parent)


def list_files(path: Path, suffix: str) -> list[Path]:
    """The files of a directory with this suffix, sorted by name."""
    return sorted(child for child in path.iterdir() if child.suffix == suffix) if path.is_dir() else []
