"""Which kind of file system a path lies on: on those of networks, locks and shared memory reach no other
machine, or don't hold.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

NETWORK_KINDS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x65735546: "FUSE",
}
"""Kinds that may be on another machine, by the number that statfs has for each (statfs(2), f_type)."""
STATFS_BYTES = 512  # the structure has 120, or fewer


def network_file_system(path: Path) -> str | None:
    """The kind of the file system that holds a path, if it may be on another machine; for a path that is not
    there yet, that of its nearest parent. None if it is local, or not known. Blocks.
    """
    path = path.absolute()
    for each in (path, *path.parents):
        if (number := file_system_number(each)) is not None:
            return network_kind(number)
    return None


def network_kind(number: int) -> str | None:
    """What this f_type is called, if it is one of NETWORK_KINDS. Its sign depends on the machine."""
    return NETWORK_KINDS.get(number & 0xFFFFFFFF)


def file_system_number(path: Path) -> int | None:
    """The f_type of the file system of a path, by Linux's statfs. None elsewhere, and if nothing is there."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        statfs = ctypes.CDLL(None).statfs
    except (OSError, AttributeError):
        return None
    answer = ctypes.create_string_buffer(STATFS_BYTES)
    if statfs(os.fsencode(path), answer) != 0:
        return None
    return ctypes.c_long.from_buffer(answer).value
