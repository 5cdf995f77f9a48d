"""Limits how many files this process has open: the ones used longest ago are closed, and opened again when
needed.

Only a fully synced file is closed, because a later disk error would be lost with the descriptor (I10). A few
spare descriptors are kept for the moment when the system has no more to give.

A descriptor lives as long as it is used: each operation holds its `Handle`. So when a file is closed
elsewhere, the operation can't write to another file that gets the same number.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from faircopy.storage.system import System

RESERVED = 64
"""For the state store, the lock, listeners, pipes, directories that are fsynced, and libraries."""
SPARE = 8
UNLIMITED = 1 << 40


class Shares(NamedTuple):
    """How the descriptors of a process are divided."""

    connections: int
    files: int


def share_out(limit: int, connections_max: int) -> Shares:
    """Divide the descriptors. A connection takes two while a response is sent without its transport."""
    left = max(limit - RESERVED, 6)
    connections = min(connections_max, left // 4)
    return Shares(connections, left - 2 * connections)


class Handle:
    """One open descriptor; closed when the last reference goes."""

    __slots__ = ("_system", "descriptor")

    def __init__(self, system: System, path: Path, flags: int) -> None:
        self.descriptor = -1
        self._system = system
        self.descriptor = system.open(path, flags)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            self._system.close(self.descriptor)


class Closable(Protocol):
    """A file whose descriptor can be closed while it is not used."""

    was_used: bool

    def try_close(self) -> bool:
        """Sync the file if necessary, and close it; false if written to meanwhile. Raises WriteFailure."""


class Descriptors:
    """The open files of this process. All methods may be called on any thread."""

    def __init__(self) -> None:
        self.files_max = UNLIMITED
        self._in_background: Callable[[Callable[[], None]], None] = lambda work: work()
        self._on_failure: Callable[[BaseException], None] = lambda error: None
        self._open: OrderedDict[int, weakref.ref[Closable]] = OrderedDict()
        self._spare: list[int] = []
        self._closing = threading.Lock()
        self._is_due = False

    def limit(
        self,
        files_max: int,
        in_background: Callable[[Callable[[], None]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Keep at most `files_max` files open. `in_background(work)` runs blocking work on some thread.
        `on_failure` is called, on any thread, when a file could not be synced, and must end the process
        (I10).
        """
        self.files_max, self._in_background, self._on_failure = files_max, in_background, on_failure
        self._refill()

    def unlimit(self) -> None:
        """Remove the limit."""
        self.files_max, self._in_background, self._on_failure = (
            UNLIMITED,
            lambda work: work(),
            lambda error: None,
        )
        while self._spare:
            os.close(self._spare.pop())

    def open(self, system: System, path: Path, flags: int, file: Closable) -> Handle:
        """Open a file. Raises OSError."""
        try:
            handle = Handle(system, path, flags)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._spare:
                raise
            os.close(self._spare.pop())
            handle = Handle(system, path, flags)
        self.remember(file)
        return handle

    def remember(self, file: Closable) -> None:
        """A file was opened. Near the limit, close some in the background; beyond it, at once."""
        self._open[id(file)] = weakref.ref(file)
        opened = len(self._open)
        if opened > self.files_max:
            self._make_room()
        elif opened > self.files_max * 7 // 8 and not self._is_due:
            self._is_due = True
            self._in_background(self._make_room)

    def forget(self, file: Closable) -> None:
        """A file was closed."""
        self._open.pop(id(file), None)

    def _make_room(self) -> None:
        """Close a quarter of the files, starting with those not used since the last time. Blocks."""
        self._is_due = False
        with self._closing:
            try:
                for _ in range(2 * len(self._open)):
                    if len(self._open) <= self.files_max * 3 // 4:
                        break
                    self._close_one()
            except Exception as error:
                self._on_failure(error)
                raise
            self._refill()

    def _close_one(self) -> None:
        try:
            key, found = self._open.popitem(last=False)
        except KeyError:
            return
        file = found()
        if file is None:
            return
        if file.was_used or not file.try_close():
            file.was_used = False
            self._open[key] = found

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._spare) < SPARE:
                self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


DESCRIPTORS = Descriptors()
"""The descriptors of this process."""
