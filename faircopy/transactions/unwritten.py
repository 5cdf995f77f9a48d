"""Transactions whose entries are not written yet. An acked draft must never belong to a transaction that a
crash of the process forgets: its producer, unaware of that, could begin another one with what remains to be
sent, and commit half of what it means to.
"""

from __future__ import annotations

from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.journal.entry import TransactionId
from faircopy.partition.partition import Appended
from faircopy.transactions.metadata_journal import MetadataJournal


class UnwrittenTransactions:
    """Which transactions have a BEGIN or an ADD that is not written yet."""

    def __init__(self) -> None:
        self._positions: dict[TransactionId, tuple[MetadataJournal, int]] = {}

    def note(self, home: MetadataJournal, transaction: TransactionId) -> None:
        """Note that an entry of this transaction was just appended."""
        self._positions[transaction] = (home, home.journal.watermarks.appended)

        def written() -> None:
            _, position = self._positions.get(transaction, (home, -1))
            if position <= home.journal.watermarks.written:
                self._positions.pop(transaction, None)

        home.journal.when_written(written)

    def once_written(self, transaction: TransactionId, done: Appended) -> Appended:
        """What to call when a draft is safe, so that `done` is called once its transaction is safe too."""
        unwritten = self._positions.get(transaction)
        if unwritten is None:
            return done
        both = Both(done)
        unwritten[0].journal.when_written(both.one_is_safe)
        return both.draft_is_safe


class Both:
    """Waits for a draft and for its transaction."""

    __slots__ = ("_done", "_offset", "_waiting")

    def __init__(self, done: Appended) -> None:
        self._done = done
        self._offset = UNKNOWN_OFFSET
        self._waiting = 2

    def one_is_safe(self) -> None:
        """One of the two is written; the second call answers the client."""
        self._waiting -= 1
        if not self._waiting:
            self._done(self._offset)

    def draft_is_safe(self, base_offset: int) -> None:
        """The draft is written; its batch would get this offset."""
        self._offset = base_offset
        self.one_is_safe()
