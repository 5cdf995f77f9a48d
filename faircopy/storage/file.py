"""One open file: positional reads and writes, and syncs that make them durable.

Every method may block; callers decide on which thread. Sizes and positions are bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from faircopy.storage.descriptors import DESCRIPTORS, Handle
from faircopy.storage.failures import StorageFailure, read_failure, write_failure
from faircopy.storage.system import Buffer, mounted

MAX_BUFFERS_PER_WRITE = 1024  # IOV_MAX of Linux


class NotCached(Exception):
    """The bytes are not in the page cache: read them on a thread. Direct callers of storage handle this."""


class File:
    """One open file. It is closed when the last reference goes, so a reader never loses it to a deletion.

    If more files are in use than may be open (`storage/descriptors.py`), it is closed earlier, and opened
    again when it is used. In that case a reader does lose it to a deletion.
    """

    __slots__ = ("__weakref__", "_flags", "_handle", "_is_synced", "_system", "path", "was_used")

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        self._flags = os.O_RDONLY if read_only else os.O_RDWR
        self.path = path
        self.was_used = True
        # A previous writer may have left it unsynced.
        self._is_synced = read_only
        self._handle: Handle | None = None
        self._system = mounted()
        try:
            self._handle = self._open(os.O_CREAT | os.O_EXCL if create else 0)
        except OSError as error:
            refused = write_failure if create else read_failure
            raise refused(f"opening {path}", error) from error

    def _open(self, more_flags: int = 0) -> Handle:
        return DESCRIPTORS.open(self._system, self.path, self._flags | more_flags, self)

    def __del__(self) -> None:
        DESCRIPTORS.forget(self)

    def close(self) -> None:
        """Close it before its last reference goes."""
        self._handle = None
        DESCRIPTORS.forget(self)

    def try_close(self) -> bool:
        """Sync the file and close the descriptor; false if written to meanwhile. Raises StorageFailure."""
        if not self._is_synced:
            self.sync()
        handle, self._handle = self._handle, None
        if not self._is_synced:
            self._handle = handle
        return self._handle is None

    def _use(self) -> Handle:
        """The open file, for one operation; it stays open while the handle is held. Raises StorageFailure."""
        self.was_used = True
        return self._handle or self._reopen()

    def _reopen(self) -> Handle:
        try:
            handle = self._handle = self._open()
        except OSError as error:
            raise read_failure(f"opening {self.path} again", error) from error
        return handle

    def size(self) -> int:
        """The size of the file in bytes. Raises StorageFailure."""
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
            raise write_failure(f"writing to {self.path} at {position}", error) from error
        self._is_synced = False
        if self._handle is not handle:
            self._changed(handle)
        return total

    def _changed(self, handle: Handle) -> None:
        """Something was changed through this handle: the next sync uses it, even if the file was closed
        since.

        The file counts as unsynced again, because a sync that began before the change and ended after it may
        have missed it.
        """
        self._is_synced = False
        if self._handle is not handle:
            self._handle = handle
            DESCRIPTORS.remember(self)

    def _write_rest(self, handle: Handle, buffers: Sequence[Buffer], written: int, position: int) -> None:
        """Finish a write that the system did only in part, or that has more buffers than one call takes."""
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
            return bytes(buffer) if size <= 64 else buffer  # type: ignore[return-value]  # not copied
        if count + position < self.size():
            raise NotCached
        return bytes(buffer[:count])

    def send(self, socket_descriptor: int, position: int, size: int) -> int:
        """Let the kernel send up to `size` bytes to a socket without copying (sendfile); return how many it
        sent.

        Waits for the disk, never for the socket. Raises BlockingIOError if the socket is full,
        ConnectionError if it is closed, StorageFailure if the file can't be read.
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
        """Reserve disk space up to `end`, so that later writes neither run out of it nor change the size."""
        handle = self._use()
        self._is_synced = False
        try:
            self._system.allocate(handle.descriptor, end)
        except OSError as error:
            raise write_failure(f"reserving {end} bytes for {self.path}", error) from error
        self._changed(handle)

    def truncate(self, size: int) -> None:
        """Cut the file to this size, or extend it with zeros. Raises StorageFailure."""
        handle = self._use()
        self._is_synced = False
        try:
            self._system.truncate(handle.descriptor, size)
        except OSError as error:
            raise write_failure(f"cutting {self.path} at {size}", error) from error
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
            raise write_failure(f"fdatasync of {self.path}", error) from error


class FileRange:
    """Bytes of a file that can be sent without reading them into memory."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size
