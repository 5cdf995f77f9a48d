"""What the system grants this process: memory and open files."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

from faircopy.storage.descriptors import UNLIMITED
from faircopy.storage.system import read_proc

FILES_OF_A_MAC = 10_240
"""A Mac says that a process may have any number of files open, and refuses more than these (OPEN_MAX)."""
STANDARD_ERROR = 2


def memory_bytes() -> int | None:
    """The memory that this process uses now; None if the system does not say."""
    pages = (read_proc("self/statm") or "").split()
    return int(pages[1]) * resource.getpagesize() if len(pages) > 1 else None


def memory_peak_bytes() -> int:
    """The most memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def allow_many_files() -> int:
    """Raise the limit of open files as far as the system allows, since partitions need many; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, FILES_OF_A_MAC):
        if soft == hard or 0 <= wanted <= soft:
            break
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else UNLIMITED


def keep_no_files() -> None:
    """Have an exec close everything but the standard streams: LMDB leaves that out for its data files.
    (Closing them here would release locks while threads still write.)
    """
    for link in list(Path("/dev/fd").iterdir()):
        if int(link.name) > STANDARD_ERROR:
            with contextlib.suppress(OSError):  # the one that listed the others is closed by now
                os.set_inheritable(int(link.name), False)
