"""Files and directories, as the journals and logs need them.

Every function may block; callers decide on which thread. Sizes and positions are bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.storage.system import Buffer as Buffer
from faircopy.storage.system import Space, mounted

MAX_BUFFERS_PER_WRITE = 1024  # IOV_MAX of Linux


class StorageFailure(FaircopyError):
    """The operating system refused something."""


class WriteFailure(StorageFailure):
    """A write, an fsync or a change of a directory failed. Whether it took effect is unknown: whoever meets this must
    not go on (I10).
    """


class NoSpace(StorageFailure):
    """The disk, or the quota, is full. Nothing was written."""


class NotCached(Exception):
    """The bytes are not in the page cache: read them on a thread. Never leaves the storage callers."""


class File:
    """One open file. Closed when the last reference goes, so a reader never loses it to a deletion."""

    __slots__ = ("_descriptor", "_system", "path")

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        flags = os.O_RDONLY if read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        self.path = path
        self._descriptor = -1
        self._system = mounted()
        try:
            self._descriptor = self._system.open(path, flags)
        except OSError as error:
            refused = failure if create else read_failure
            raise refused(f"opening {path}", error) from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            self._system.close(self._descriptor)

    def close(self) -> None:
        """Close it before its last reference goes."""
        descriptor, self._descriptor = self._descriptor, -1
        self._system.close(descriptor)

    def size(self) -> int:
        return self._system.size(self._descriptor)

    def write(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write all of `buffers`, one after the other, from `position` on; return the bytes written."""
        try:
            written = self._system.write(self._descriptor, buffers[:MAX_BUFFERS_PER_WRITE], position)
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
            count = self._system.write(self._descriptor, rest[:MAX_BUFFERS_PER_WRITE], at)
            at += count
            while rest and count >= len(rest[0]):
                count -= len(rest.pop(0))
            if rest and count:
                rest[0] = rest[0][count:]

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        try:
            data = self._system.read(self._descriptor, size, position)
            while 0 < len(data) < size:
                more = self._system.read(self._descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise read_failure(f"reading {self.path} at {position}", error) from error
        return data

    def read_cached(self, size: int, position: int) -> bytes:
        """As `read`, but only from the page cache; raises NotCached rather than wait for the disk."""
        buffer = bytearray(size)
        try:
            count = self._system.read_cached(self._descriptor, buffer, position)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS):
                raise NotCached from None
            raise read_failure(f"reading {self.path} at {position}", error) from error
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
            sent = self._system.send(self._descriptor, socket_descriptor, position, size)
        except (BlockingIOError, ConnectionError):
            raise
        except OSError as error:
            raise read_failure(f"sending {size} bytes of {self.path} at {position}", error) from error
        if not sent:
            raise StorageFailure(f"{self.path} ends before byte {position + size}, which was to be sent")
        return sent

    def preallocate(self, end: int) -> None:
        """Reserve disk space up to `end`, so that later writes can neither run out of it nor change the size."""
        try:
            self._system.allocate(self._descriptor, end)
        except OSError as error:
            raise failure(f"reserving {end} bytes for {self.path}", error) from error

    def truncate(self, size: int) -> None:
        try:
            self._system.truncate(self._descriptor, size)
        except OSError as error:
            raise failure(f"cutting {self.path} at {size}", error) from error

    def sync(self) -> None:
        """Make the file's bytes durable. After an error the file must not be used again (I10)."""
        try:
            self._system.sync(self._descriptor)
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


def read_failure(doing: str, error: OSError) -> StorageFailure:
    """What to raise when the operating system refuses to read."""
    return StorageFailure(f"{doing}: {error.strerror or error}")


def failure(doing: str, error: OSError) -> StorageFailure:
    """What to raise when the operating system refuses to write: NoSpace, or WriteFailure."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(f"{doing}: no space is left: free some")
    return WriteFailure(f"{doing}: {error.strerror or error}")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: needed after a file in it was made, renamed or deleted."""
    try:
        mounted().sync_directory(path)
    except OSError as error:
        raise failure(f"fsync of directory {path}", error) from error


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, durably. Nothing happens if it is there."""
    if is_directory(path):
        return
    make_directory(path.parent)
    try:
        mounted().make_directory(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise failure(f"making the directory {path}", error) from error
    sync_directory(path.parent)


def is_directory(path: Path) -> bool:
    status = mounted().status(path)
    return status is not None and status.is_directory


def exists(path: Path) -> bool:
    return mounted().status(path) is not None


def size_of(path: Path) -> int:
    """Size of a file that is there."""
    status = mounted().status(path)
    if status is None:
        raise StorageFailure(f"{path} is gone")
    return status.size


def space_around(path: Path) -> Space:
    """The size of the disk that holds a path, and what of it is free. Raises StorageFailure."""
    try:
        return mounted().space(path)
    except OSError as error:
        raise read_failure(f"asking for the space around {path}", error) from error


def modified_ms(path: Path) -> int | None:
    """When a file was last written to, by the wall clock; None if it is not there."""
    status = mounted().status(path)
    return None if status is None else status.modified_ns // 1_000_000


def delete_file(path: Path) -> None:
    """Delete a file; nothing happens if it is gone already."""
    try:
        mounted().delete(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failure(f"deleting {path}", error) from error


def rename_file(old: Path, new: Path) -> None:
    """Give a file another name in its directory; the caller makes the name durable."""
    try:
        mounted().rename(old, new)
    except OSError as error:
        raise failure(f"renaming {old} to {new.name}", error) from error


def delete_tree(path: Path) -> None:
    """Delete a directory of ours with all that is in it; nothing happens if it is gone already."""
    if not is_directory(path):
        return
    for child in list_directory(path):
        if is_directory(child):
            delete_tree(child)
        else:
            delete_file(child)
    try:
        mounted().remove_directory(path)
    except OSError as error:
        raise failure(f"deleting {path}", error) from error
    sync_directory(path.parent)


def list_directory(path: Path) -> list[Path]:
    """What is in a directory, sorted by name; nothing if it is not there."""
    return sorted(path / name for name in mounted().list(path)) if is_directory(path) else []


def read_file(path: Path) -> bytes:
    """All of a file."""
    file = File(path, read_only=True)
    return file.read(file.size(), 0)


def write_file(path: Path, content: bytes) -> None:
    """Make a file with this content, durably; after a crash it is there whole, or as it was before."""
    temporary = path.with_suffix(".tmp")
    delete_file(temporary)
    file = File(temporary, create=True)
    file.write([content], 0)
    file.sync()
    rename_file(temporary, path)
    sync_directory(path.parent)


def list_files(path: Path, suffix: str) -> list[Path]:
    """The files of a directory with this suffix, sorted by name."""
    return [child for child in list_directory(path) if child.suffix == suffix]
