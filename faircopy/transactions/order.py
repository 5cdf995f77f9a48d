"""The order in which transactions become visible: within a group (P5) that in which their journal decided to commit
them, and between groups, on one broker, the same in every partition.

Pure.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from faircopy.copier.fold import NO_RANK
from faircopy.journal.entry import TransactionId

Item = TypeVar("Item")


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

    def removed(self, group: str, transaction: TransactionId) -> list[TransactionId]:
        """The transaction is aborted after all: those that waited for nothing else may be applied now, in order."""
        self._waiting[group].remove(transaction)
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


def by_rank(decided: Sequence[tuple[str, int, Item]]) -> list[Item]:
    """Who goes first when a crash came while transactions were applied: each is (group, rank, item), and each group's
    stand in its order. NO_RANK is that of one that no partition has applied.

    In every partition what is applied is the first of what the broker meant to apply there. So those with a rank go on
    in that order, or partitions would differ. One without is in no log yet, and may go anywhere, but before the later
    ones of its group.
    """
    latest: dict[str, float] = {}
    ranks = []
    for group, rank, _ in reversed(decided):
        latest[group] = min(latest.get(group, math.inf), math.inf if rank == NO_RANK else rank)
        ranks.append(latest[group])
    ranks.reverse()
    return [decided[number][2] for number in sorted(range(len(decided)), key=ranks.__getitem__)]
