"""One journal's wait for space on a full disk.

Appended entries already have their place in the order. So they are kept, and their write is repeated until it
succeeds. Meanwhile no more entries are accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from faircopy.journal.errors import JournalFull, NotEnoughReplicas
from faircopy.storage.failures import Shortage
from faircopy.storage.space_watch import SpaceWatch

RETRY_SECONDS = 1.0


class SpaceWait:
    """Whether a journal waits, and which callers prefer an error to waiting. Belongs to the event loop.

    `shortage` is the shortage of the last write, until one succeeds. `is_pausing` is true between two tries.
    """

    def __init__(self, watch: SpaceWatch, loop: asyncio.AbstractEventLoop) -> None:
        self._watch = watch
        self._loop = loop
        self._unless_full: list[asyncio.Future[None]] = []
        self.shortage: Shortage | None = None
        self.is_pausing = False

    def ensure_space(self) -> None:
        """Raise JournalFull while the disk is full: for entries that take more space than they free."""
        self.ensure_replicas()
        lacking = self.shortage or self._watch.shortage
        if lacking is not None:
            raise JournalFull(f"{lacking}, and the broker goes on by itself")

    def ensure_replicas(self) -> None:
        """Raise NotEnoughReplicas while replicas are missing: for whatever is new."""
        if isinstance(self._watch.elsewhere, NotEnoughReplicas):
            raise NotEnoughReplicas(str(self._watch.elsewhere))

    def ensure_reserve(self) -> None:
        """Raise JournalFull while this journal waits: for entries that free space or decide transactions."""
        if self.shortage is not None:
            raise JournalFull(f"{self.shortage}, and the broker goes on by itself")

    def start(self, error: Shortage, try_again: Callable[[], None]) -> None:
        """A write has failed: try again soon, at once if the reserve was given up for it."""
        self.shortage, self.is_pausing = error, True
        is_worth_it = self._watch.note_waiting(self, error)
        self._loop.call_later(0 if is_worth_it else RETRY_SECONDS, self._go_on, try_again)
        if not is_worth_it:
            self._refuse(error)

    def end(self) -> None:
        """The write has succeeded, or was given up."""
        self.shortage = None
        self._watch.resumed(self)

    def refuse_if_full(self, waiting: asyncio.Future[None]) -> None:
        """Make this future fail with JournalFull when there is no space, instead of waiting for space."""
        self._unless_full = [each for each in self._unless_full if not each.done()]
        self._unless_full.append(waiting)

    def _go_on(self, try_again: Callable[[], None]) -> None:
        self.is_pausing = False
        try_again()

    def _refuse(self, error: Shortage) -> None:
        refused, self._unless_full = self._unless_full, []
        for waiting in refused:
            if not waiting.done():
                waiting.set_exception(JournalFull(str(error)))
