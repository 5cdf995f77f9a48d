"""The errors of storage, and which operations can be tried again.

After a `Shortage` nothing has changed. After a `WriteFailure` nobody knows what took effect.
"""

from __future__ import annotations

import errno

from faircopy.errors import FaircopyError


class StorageFailure(FaircopyError):
    """The operating system refused an operation."""


class WriteFailure(StorageFailure):
    """A write, an fsync or a change of a directory failed.

    It is unknown whether it took effect, so the process must not continue (I10).
    """


class Shortage(StorageFailure):
    """The machine lacks a resource for now. Nothing was written, so the operation can be tried again."""


class NoSpace(Shortage):
    """The disk, or the quota, is full."""


class NoDescriptors(Shortage):
    """This process, or the machine, has reached its limit of open files."""


def read_failure(doing: str, error: OSError) -> StorageFailure:
    """The error to raise when the operating system refuses to read."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return no_descriptors(doing, error)
    return StorageFailure(f"{doing}: {error.strerror or error}")


def write_failure(doing: str, error: OSError) -> StorageFailure:
    """The error to raise when the operating system refuses to write: a Shortage or a WriteFailure."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return no_descriptors(doing, error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(f"{doing}: no space is left: free some")
    return WriteFailure(f"{doing}: {error.strerror or error}")


def no_descriptors(doing: str, error: OSError) -> NoDescriptors:
    """The error to raise when there are no more descriptors."""
    return NoDescriptors(
        f"{doing}: {error.strerror}: raise the limit of open files (ulimit -n), or close some"
    )
