"""A journal in memory. Its entries are written at once, unless a script holds them, and durable when it says
so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from faircopy.journal.draft_space import DraftSpace
from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, NOWHERE, Entry, Kind, TransactionId
from faircopy.journal.watermarks import Watermarks
from faircopy.loop.waiting import tell
from faircopy.storage.system import Buffer

Callback = Callable[[], None]
Folded = TypeVar("Folded")


class Kept(NamedTuple):
    """An entry and its payload."""

    entry: Entry
    payload: bytes


class Waiter(NamedTuple):
    """Who waits until the journal is written, or durable, up to a position."""

    up_to: int
    callback: Callback


class ScriptedJournal:
    """Stands in for `Journal`. `tell` is called with each entry that is appended."""

    def __init__(self, tell: Callable[[Entry, bytes], None]) -> None:
        self.watermarks = Watermarks(is_synced_first=True)
        self.leader_epoch = 1
        self.draft_space = DraftSpace()
        self.entries: list[Kept] = []
        self._tell = tell
        self._is_held = False
        self._for_writes: list[Waiter] = []
        self._waiting: list[Waiter] = []

    # -- what the broker calls -------------------------------------------------------------------------------

    def append(
        self,
        kind: Kind,
        payload: Buffer = b"",
        *,
        fold: Callable[[Entry], Folded],
        records: int = 0,
        previous: int = NOWHERE,
        transaction: TransactionId = NO_TRANSACTION,
    ) -> Folded:
        """Fold an entry, append it, and return what its fold returns."""
        marks, kept = self.watermarks, bytes(payload)
        length = HEADER_BYTES + len(kept)
        entry = Entry(
            kind, marks.appended, length, records, self.leader_epoch, previous, transaction, marks.synced
        )
        folded = fold(entry)
        self.entries.append(Kept(entry, kept))
        marks.appended += length
        if not self._is_held:
            marks.note_written(marks.appended)
        self._tell(entry, kept)
        return folded

    def when_kept(self, callback: Callback) -> None:
        """Call back when what is here now is written: at once, unless it is held."""
        self._for_writes.append(Waiter(self.watermarks.appended, callback))
        self._release()

    def when_durable(self, callback: Callback) -> None:
        """Call back when the script says that what is here now is durable."""
        self._waiting.append(Waiter(self.watermarks.appended, callback))
        self._release()

    when_durable_without_sync = when_durable

    async def durable(self) -> None:
        """Wait until the script says that what is here now is durable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.when_durable(lambda: tell(future))
        await future

    async def kept(self) -> None:
        """Wait until what is here now is written."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.when_kept(lambda: tell(future))
        await future

    def ensure_space(self) -> None:
        """There is space."""

    def ensure_replicas(self) -> None:
        """There are no others."""

    ensure_reserve = ensure_space

    def keep_draft(self, entry: Entry, payload: Buffer) -> None:
        """Nothing is copied here."""

    # -- what a script does ----------------------------------------------------------------------------------

    @property
    def is_durable(self) -> bool:
        """Whether all entries are."""
        return self.watermarks.synced == self.watermarks.appended

    def hold(self) -> None:
        """What is appended from now on is not written."""
        self._is_held = True

    def write(self) -> None:
        """All entries are written now, and later ones at once."""
        self._is_held = False
        self.watermarks.note_written(self.watermarks.appended)
        self._release()

    def sync(self) -> None:
        """All entries that are written are durable now."""
        self.watermarks.note_synced(self.watermarks.written)
        self._release()

    def pass_on(self, *, lost_power: bool) -> None:
        """The process has ended, and another one leads. What is not written is lost; with a loss of power,
        what is not durable as well.
        """
        left = self.watermarks.synced if lost_power else self.watermarks.written
        self.entries = [kept for kept in self.entries if kept.entry.end <= left]
        end = self.entries[-1].entry.end if self.entries else 0
        self.watermarks.start_at(end)
        self.leader_epoch += 1
        self._is_held = False
        self._for_writes, self._waiting = [], []

    def _release(self) -> None:
        while self._for_writes and self._for_writes[0].up_to <= self.watermarks.written:
            self._for_writes.pop(0).callback()
        while self._waiting and self._waiting[0].up_to <= self.watermarks.durable:
            self._waiting.pop(0).callback()
