"""Recently appended drafts, kept in memory: most transactions commit soon, and then don't have to be read
back.

There is one store for all journals of a broker, bounded in bytes and in number; the oldest drafts go first.
It is only a cache: other drafts are read from the journal.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from faircopy.journal.entry import NOWHERE, Entry, TransactionId
from faircopy.storage.system import Buffer

DRAFTS_MAX = 4_096
"""This many can be taken in about a millisecond."""


class Draft(NamedTuple):
    """One draft on a transaction's list; `payload` is its record batch; None if only the place is known."""

    entry: Entry
    payload: memoryview | None


class RecentDrafts:
    """The newest drafts of all journals, up to `bytes_max` of memory. Belongs to the event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._drafts: OrderedDict[tuple[object, int], Draft] = OrderedDict()

    def keep(self, journal: object, entry: Entry, payload: Buffer) -> None:
        """Keep a draft that was just appended to this journal. `payload` must never change."""
        if len(payload) > self._bytes_max:
            return
        held = sole(payload)
        self._drafts[journal, entry.position] = Draft(entry, held)
        self._bytes += len(held)
        while self._bytes > self._bytes_max or len(self._drafts) > DRAFTS_MAX:
            self._forget(next(iter(self._drafts)))

    def take(self, journal: object, transaction: TransactionId, head: int) -> list[Draft]:
        """Take out the drafts from `head` back to the first one not in memory; returns the oldest first."""
        taken: list[Draft] = []
        position = head
        while position != NOWHERE:
            draft = self._drafts.get((journal, position))
            if draft is None or draft.entry.transaction != transaction:
                break
            self._forget((journal, position))
            taken.append(draft)
            position = draft.entry.previous
        taken.reverse()
        return taken

    def forget_all(self, journal: object) -> None:
        """Forget the drafts of a journal that nobody will read any more."""
        for key in [key for key in self._drafts if key[0] is journal]:
            self._forget(key)

    def _forget(self, key: tuple[object, int]) -> None:
        draft = self._drafts.pop(key)
        assert draft.payload is not None
        self._bytes -= len(draft.payload)


def sole(payload: Buffer) -> memoryview:
    """A view of the payload that keeps little else alive: a copy if it is less than half of its buffer."""
    view = memoryview(payload)
    held = view.obj
    is_most = isinstance(held, bytes | bytearray) and 2 * len(view) >= len(held)
    return view if is_most else memoryview(bytes(view))
