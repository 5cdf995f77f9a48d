"""Order within a group (P5): transactions become visible in the order in which their journal decided to commit them.

Pure.
"""

from __future__ import annotations

from collections import deque

from faircopy.journal.entry import TransactionId


class GroupOrder:
    """For each group, the transactions that were decided and not yet released, oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[TransactionId]] = {}
        self._ready: set[TransactionId] = set()

    def decided(self, group: str, transaction: TransactionId) -> None:
        """A transaction takes its place in the order. Call in the journal's order."""
        self._waiting.setdefault(group, deque()).append(transaction)

    def durable(self, group: str, transaction: TransactionId) -> list[TransactionId]:
        """The decision is durable: the transactions that may be applied now, in order."""
        self._ready.add(transaction)
        return self._release(group)

    def _release(self, group: str) -> list[TransactionId]:
        waiting = self._waiting[group]
        released = []
        while waiting and waiting[0] in self._ready:
            released.append(waiting.popleft())
            self._ready.discard(released[-1])
        if not waiting:
            del self._waiting[group]
        return released
