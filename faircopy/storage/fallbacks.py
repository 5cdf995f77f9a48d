"""The calls of Linux that other systems lack, made of those that all have. `storage/system.py` chooses.

All of them block, and raise OSError. Positions and sizes are bytes.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence

ZEROS = bytes(1 << 20)
SEND_BYTES_MAX = 256 << 10
"""A socket rarely takes more at once, and what it does not take is read again."""
NO_SUCH_CALL = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)


def allocate(descriptor: int, end: int) -> None:
    """As posix_fallocate: let a file grow to `end`, with space for it all. If there is none, it stays as it
    was. Nobody may write beyond its end meanwhile: of journals and of the state store, one write is made at a
    time, after its space is reserved. (Where a file system copies on write, as APFS does, overwriting takes
    space again: a full disk then shows at the write.)
    """
    size = os.fstat(descriptor).st_size
    at = size
    try:
        while at < end:
            at += os.pwrite(descriptor, memoryview(ZEROS)[: end - at], at)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def write(descriptor: int, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
    """As pwritev: write some of the bytes, and return how many."""
    return os.pwrite(descriptor, b"".join(buffers), position)


def send(descriptor: int, socket_descriptor: int, position: int, size: int) -> int:
    """As Linux's sendfile: send some of the bytes to a socket, and return how many."""
    data = os.pread(descriptor, min(size, SEND_BYTES_MAX), position)
    return os.write(socket_descriptor, data) if data else 0


def flush_drive(descriptor: int) -> None:
    """As fsync of Linux, on a Mac: its own fsync leaves the bytes in the cache of the drive, which a loss of
    power empties. File systems that can't do more than that fsync, as those of networks, do that.
    """
    try:
        fcntl.fcntl(descriptor, getattr(fcntl, "F_FULLFSYNC"))  # noqa: B009 - unknown on Linux
    except OSError as error:
        if error.errno not in NO_SUCH_CALL:
            raise
        os.fsync(descriptor)
