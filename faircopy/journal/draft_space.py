"""The space that drafts take in journals until their transactions end. It is bounded, for each of them and
for all together, since one may stay open for days.
"""

from __future__ import annotations

from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.storage.paths import space_around

NO_LIMIT_BYTES = 1 << 62


class TooManyDrafts(FaircopyError):
    """A draft is above a limit, and was not written. Its transaction has to be aborted: clients count on from
    what was refused, so the partition could take nothing more of it.
    """


def at_most_half_of_the_disk(size: int, directory: Path) -> int:
    """A number of bytes, or half of the disk that holds a directory. Raises StorageFailure."""
    return min(size, space_around(directory).total_bytes // 2)


class DraftSpace:
    """How many bytes of drafts each transaction has, in all partitions. Belongs to the event loop."""

    def __init__(self, transaction_max_bytes: int = NO_LIMIT_BYTES, max_bytes: int = NO_LIMIT_BYTES) -> None:
        self._transaction_max_bytes = transaction_max_bytes
        self.max_bytes = max_bytes
        self.bytes = 0
        self._bytes_of: dict[TransactionId, int] = {}

    def take(self, transaction: TransactionId, size: int) -> None:
        """Take space for a draft. Raises TooManyDrafts."""
        taken = self._bytes_of.get(transaction, 0)
        if taken + size > self._transaction_max_bytes:
            raise TooManyDrafts(
                f"it has {taken} bytes of messages, and can't have {size} more, as "
                f"transaction.drafts.max.bytes is {self._transaction_max_bytes}. Write less in one "
                f"transaction, or raise it"
            )
        if self.bytes + size > self.max_bytes:
            raise TooManyDrafts(
                f"all open transactions have {self.bytes} bytes of messages, and can't have {size} more, as "
                f"drafts.max.bytes is {self.max_bytes}. End those that nobody needs (`faircopy txn list`), "
                f"or raise it"
            )
        self.count(transaction, size)

    def count(self, transaction: TransactionId, size: int) -> None:
        """Count drafts, as a start finds them. They may be above the limits: these may be lower now."""
        self.bytes += size
        self._bytes_of[transaction] = self._bytes_of.get(transaction, 0) + size

    def give_back(self, transaction: TransactionId, size: int) -> None:
        """Drafts of a transaction are decided, or gone with their partition."""
        self.bytes -= size
        left = self._bytes_of.pop(transaction, 0) - size
        if left > 0:
            self._bytes_of[transaction] = left
