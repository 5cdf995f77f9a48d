"""Files and directories, as the journals and logs need them.

Every function may block; callers decide on which thread. Sizes and positions are bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.storage.descriptors import DESCRIPTORS, Handle
from faircopy.storage.system import Buffer as Buffer
from faircopy.storage.system import Space, mounted

MAX_BUFFERS_PER_WRITE = 1024  # IOV_MAX of Linux


class StorageFailure(FaircopyError):
    """The operating system refused something."""


class WriteFailure(StorageFailure):
    """A write, an fsync or a change of a directory failed. Whether it took effect is unknown: whoever meets this must
    not go on (I10).
    """


class Shortage(StorageFailure):
    """The machine lacks something, for now. Nothing was written: it can be tried again."""


class NoSpace(Shortage):
    """The disk, or the quota, is full."""


class NoDescriptors(Shortage):
    """This process, or the machine, has as many files open as it may."""


class NotCached(Exception):
    """The bytes are not in the page cache: read them on a thread. Never leaves the storage callers."""


class File:
    """One open file. Closed when the last reference goes, so a reader never loses it to a deletion.

    Where more files are in use than may be open (`storage.descriptors`), it is closed before, and opened again when it
    is used; then a deletion does take it from a reader.
    """

    __slots__ = ("__weakref__", "_flags", "_handle", "_is_synced", "_system", "path", "was_used")

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        self._flags = os.O_RDONLY if read_only else os.O_RDWR
        self.path = path
        self.was_used = True
        # Who wrote it before may have left it unsynced.
        self._is_synced = read_only
        self._handle: Handle | None = None
        self._system = mounted()
        try:
            self._handle = self._open(os.O_CREAT | os.O_EXCL if create else 0)
        except OSError as error:
            refused = failure if create else read_failure
            raise refused(f"opening {path}", error) from error

    def _open(self, more_flags: int = 0) -> Handle:
        return DESCRIPTORS.open(self._system, self.path, self._flags | more_flags, self)

    def __del__(self) -> None:
        DESCRIPTORS.forget(self)

    def close(self) -> None:
        """Close it before its last reference goes."""
        self._handle = None
        DESCRIPTORS.forget(self)

    def has_closed(self) -> bool:
        """Give the descriptor back, if all is synced or can be. False if it is written to meanwhile. Blocks."""
        if not self._is_synced:
            self.sync()
        handle, self._handle = self._handle, None
        if not self._is_synced:
            self._handle = handle
        return self._handle is None

    def _use(self) -> Handle:
        """The open file, for one operation; who holds it keeps it open. Raises StorageFailure."""
        self.was_used = True
        return self._handle or self._reopen()

    def _reopen(self) -> Handle:
        try:
            handle = self._handle = self._open()
        except OSError as error:
            raise read_failure(f"opening {self.path} again", error) from error
        return handle

    def size(self) -> int:
        return self._system.size(self._use().descriptor)

    def write(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write all of `buffers`, one after the other, from `position` on; return the bytes written."""
        self.was_used, self._is_synced = True, False
        handle = self._handle or self._reopen()
        try:
            written = self._system.write(handle.descriptor, buffers[:MAX_BUFFERS_PER_WRITE], position)
            total = sum(map(len, buffers))
            if written < total:
                self._write_rest(handle, buffers, written, position)
        except OSError as error:
            raise failure(f"writing to {self.path} at {position}", error) from error
        self._is_synced = False
        if self._handle is not handle:
            self._changed(handle)
        return total

    def _changed(self, handle: Handle) -> None:
        """Something was changed through this handle: that one is to be synced, whoever has closed the file since.

        Not synced, once more: a sync that began before the change, and ended after it, does not speak for it.
        """
        self._is_synced = False
        if self._handle is not handle:
            self._handle = handle
            DESCRIPTORS.remember(self)

    def _write_rest(self, handle: Handle, buffers: Sequence[Buffer], written: int, position: int) -> None:
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
            count = self._system.write(handle.descriptor, rest[:MAX_BUFFERS_PER_WRITE], at)
            at += count
            while rest and count >= len(rest[0]):
                count -= len(rest.pop(0))
            if rest and count:
                rest[0] = rest[0][count:]

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        handle = self._use()
        try:
            data = self._system.read(handle.descriptor, size, position)
            while 0 < len(data) < size:
                more = self._system.read(handle.descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise read_failure(f"reading {self.path} at {position}", error) from error
        return data

    def read_cached(self, size: int, position: int) -> bytes:
        """As `read`, but only from the page cache; raises NotCached rather than wait for the disk."""
        buffer = bytearray(size)
        handle = self._use()
        try:
            count = self._system.read_cached(handle.descriptor, buffer, position)
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
        handle = self._use()
        try:
            sent = self._system.send(handle.descriptor, socket_descriptor, position, size)
        except (BlockingIOError, ConnectionError):
            raise
        except OSError as error:
            raise read_failure(f"sending {size} bytes of {self.path} at {position}", error) from error
        if not sent:
            raise StorageFailure(f"{self.path} ends before byte {position + size}, which was to be sent")
        return sent

    def preallocate(self, end: int) -> None:
        """Reserve disk space up to `end`, so that later writes can neither run out of it nor change the size."""
        handle = self._use()
        self._is_synced = False
        try:
            self._system.allocate(handle.descriptor, end)
        except OSError as error:
            raise failure(f"reserving {end} bytes for {self.path}", error) from error
        self._changed(handle)

    def truncate(self, size: int) -> None:
        handle = self._use()
        self._is_synced = False
        try:
            self._system.truncate(handle.descriptor, size)
        except OSError as error:
            raise failure(f"cutting {self.path} at {size}", error) from error
        self._changed(handle)

    def sync(self) -> None:
        """Make the file's bytes durable. After an error the file must not be used again (I10)."""
        handle = self._handle
        if handle is None:
            return  # it was synced before it was closed, and nobody has used it since
        self._is_synced = True
        try:
            self._system.sync(handle.descriptor)
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
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return no_descriptors(doing, error)
    return StorageFailure(f"{doing}: {error.strerror or error}")


def failure(doing: str, error: OSError) -> StorageFailure:
    """What to raise when the operating system refuses to write: a Shortage, or WriteFailure."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return no_descriptors(doing, error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(f"{doing}: no space is left: free some")
    return WriteFailure(f"{doing}: {error.strerror or error}")


def no_descriptors(doing: str, error: OSError) -> NoDescriptors:
    return NoDescriptors(f"{doing}: {error.strerror}: raise the limit of open files (ulimit -n), or close some")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: needed after a file in it was made, renamed or deleted."""
    try:
        mounted().sync_directory(path)
    except OSError as error:
        raise failure(f"fsync of directory {path}", error) from error


def make_directory(path: Path, *, durable: bool = True) -> None:
    """Make a directory, and those above it, durably if asked. Nothing happens if it is there."""
    if is_directory(path):
        return
    make_directory(path.parent, durable=durable)
    try:
        mounted().make_directory(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise failure(f"making the directory {path}", error) from error
    if not durable:
        return
    try:
        sync_directory(path.parent)
    except NoDescriptors:
        # Else the next try would find it there, and take its name for durable.
        with contextlib.suppress(OSError):
            mounted().remove_directory(path)
        raise


def is_directory(path: Path) -> bool:
    status = mounted().status(path)
    return status is not None and status.is_directory


def exists(path: Path) -> bool:
    return mounted().status(path) is not None


def reaches(path: Path, byte: int) -> bool:
    """Whether a file is there, and has so many bytes at least."""
    status = mounted().status(path)
    return status is not None and status.size >= byte


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


def link_file(old: Path, new: Path) -> None:
    """Give a file another name, in whatever directory of the same file system. Raises StorageFailure."""
    try:
        mounted().link(old, new)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise failure(f"linking {old} to {new}", error) from error
        raise read_failure(f"linking {old} to {new}", error) from error


def delete_tree(path: Path, *, durable: bool = True) -> None:
    """Delete a directory of ours with all that is in it, durably if asked; nothing happens if it is gone already."""
    if not is_directory(path):
        return
    for child in list_directory(path):
        if is_directory(child):
            delete_tree(child, durable=durable)
        else:
            delete_file(child)
    try:
        mounted().remove_directory(path)
    except OSError as error:
        raise failure(f"deleting {path}", error) from error
    if durable:
        sync_directory(path.parent)


def list_directory(path: Path) -> list[Path]:
    """What is in a directory, sorted by name; nothing if it is not there."""
    try:
        names = mounted().list(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise read_failure(f"listing {path}", error) from error
    return [path / name for name in sorted(names)]


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
    return with_suffix(suffix, list_directory(path))


def with_suffix(suffix: str, paths: Iterable[Path]) -> list[Path]:
    """Those of the files that have this suffix."""
    return [path for path in paths if path.suffix == suffix]
