"""Transactions whose entries are not written yet. An acked draft must never belong to a transaction that a
crash of the process forgets: its producer, unaware of that, could begin another one with what remains to be
sent, and commit half of what it means to. In a set, what is written or fsynced here is so on other replicas,
too (A1).
"""

from __future__ import annotations

from dataclasses import dataclass

from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.journal.entry import TransactionId
from faircopy.partition.partition import Appended
from faircopy.transactions.metadata_journal import MetadataJournal


@dataclass(frozen=True, eq=False)
class LastEntry:
    """The last entry of a transaction that drafts must wait for, and whether until it is fsynced."""

    home: MetadataJournal
    is_durable: bool


class UnwrittenTransactions:
    """Which transactions have a BEGIN or an ADD that is not written yet; or not fsynced, if acked drafts are
    to survive a loss of power.
    """

    def __init__(self) -> None:
        self._last: dict[TransactionId, LastEntry] = {}

    def note(self, home: MetadataJournal, transaction: TransactionId, *, is_durable: bool) -> None:
        """Note that an entry of this transaction was just appended."""
        last = self._last[transaction] = LastEntry(home, is_durable)

        def safe() -> None:
            if self._last.get(transaction) is last:
                del self._last[transaction]

        home.when_safe(safe, is_durable=is_durable)

    def once_written(self, transaction: TransactionId, done: Appended) -> Appended:
        """What to call when a draft is safe, so that `done` is called once its transaction is safe too."""
        last = self._last.get(transaction)
        if last is None:
            return done
        both = Both(done)
        last.home.when_safe(both.one_is_safe, is_durable=last.is_durable)
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
