"""Watches how much space a disk has left, and limits writes when that is nearly none. Each state is logged
once, however many writes wait.

Besides the reserve (`storage.reserve`), the same amount of space is left free. With less, new messages and
topics are refused, while accepted messages are still written, and so is everything that frees space. Between
two looks at the disk at most a quarter of the free space is used, so that accepted messages fit. A write
finds no space only if something else fills the disk, or a quota is reached: then the reserve is given up. The
shortage is over when no write waits, the reserve exists again, and there is room.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from faircopy.storage.failures import NoSpace, Shortage
from faircopy.storage.reserve import Reserve

ADVICE = (
    "No messages and no topics are taken until there is some: delete records or topics, or enlarge the disk"
)
WAITING = "Until then no messages and no topics are taken"
MIB = 1 << 20

log = logging.getLogger(__name__)


class Look(NamedTuple):
    """The state of the disk: whether the reserve exists, and how many bytes are free besides."""

    has_reserve: bool
    usable_bytes: int


class SpaceWatch:
    """The writers that wait for space on a disk. For one event loop, but `release_reserve` and `look` may run
    on any thread.

    `shortage` is the reason why new messages are refused; None as long as there is space. `elsewhere` is one
    that is not this disk's: another replica has none, or is missing.
    """

    def __init__(self, reserve: Reserve | None = None) -> None:
        self._reserve = reserve
        self._waiting: set[int] = set()
        self._budget_bytes: int | None = None
        self._full: Exception | None = None
        self._giving = threading.Lock()
        self._own: Exception | None = None
        self.elsewhere: Exception | None = None

    @property
    def shortage(self) -> Exception | None:
        """Why new messages are refused."""
        return self._own or self.elsewhere

    # -- writing ---------------------------------------------------------------------------------------------

    def spend(self, size: int) -> None:
        """Account for `size` bytes that are about to be written to a journal, and later to a log."""
        if self._budget_bytes is not None:
            self._budget_bytes -= 2 * size
            if self._budget_bytes < 0 and self._own is None:
                self._own = NoSpace("the disk is nearly full: new messages are accepted slowly")

    def note_waiting(self, who: object, error: Shortage) -> bool:
        """A write found the disk full, and is repeated until it succeeds. Return whether to retry at once."""
        self._waiting.add(id(who))
        return self.release_reserve(error)

    @property
    def is_full(self) -> bool:
        """Whether a writer waits."""
        return bool(self._waiting)

    def resumed(self, who: object) -> None:
        """The write has succeeded, or was given up."""
        self._waiting.discard(id(who))
        if self._reserve is None:
            self._end()

    def has_room_for(self, size: int) -> bool:
        """Whether a large write may be tried: on a full disk, half of the reserve is left to small writes."""
        reserve = self._reserve
        return self._full is None or reserve is None or reserve.leaves(size, reserve.size_bytes // 2)

    def release_reserve(self, error: Shortage) -> bool:
        """A write found the disk full. Return whether it is worth another try at once."""
        with self._giving:
            reserve, is_known = self._reserve, self._full is not None
            self._own = self._full = self._full or error
            if reserve is not None and reserve.is_there and isinstance(error, NoSpace):
                reserve.give_up()
                size = max(reserve.size_bytes // MIB, 1)
                log.error(
                    "%s. The reserve of %d MiB is given up for what frees space. %s", error, size, ADVICE
                )
                return True
            if not is_known:
                log.error("%s. %s", error, ADVICE if isinstance(error, NoSpace) else WAITING)
            return False

    # -- looking ---------------------------------------------------------------------------------------------

    def look(self) -> Look | None:
        """Look at the disk. Create a missing reserve if nothing waits. Blocks. Raises StorageFailure."""
        if self._reserve is None:
            return None
        has_reserve = self._reserve.is_there or (not self._waiting and self._reserve.make())
        return Look(has_reserve, self._reserve.usable_bytes())

    def looked(self, look: Look | None) -> None:
        """Update the state after a look at the disk."""
        if look is None or self._reserve is None:
            return
        margin = self._reserve.size_bytes
        self._budget_bytes = max(look.usable_bytes - margin, 0) // 4
        self._own = self._full
        if self._full is None and look.usable_bytes < margin:
            self._own = self._full = NoSpace(f"the disk has only {look.usable_bytes // MIB} MiB free")
            log.error("%s. %s", self._full, ADVICE)
        elif (look.has_reserve or not margin) and look.usable_bytes >= 2 * margin:
            self._end()

    def _end(self) -> None:
        if self._full is not None and not self._waiting:
            found = "the disk has space" if isinstance(self._full, NoSpace) else "there are descriptors"
            self._own = self._full = None
            log.info("%s again: all that waited is written", found)
