"""The order in which transactions become visible. Within a group (P5), it is the order in which their journal
decided to commit them. Between groups, on one broker, it is the same in every partition.

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
    """For each group, the transactions that are decided but not yet released, oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[TransactionId]] = {}
        self._ready: set[TransactionId] = set()

    def decided(self, group: str, transaction: TransactionId) -> None:
        """Give a transaction its place in the order. Call in the journal's order."""
        self._waiting.setdefault(group, deque()).append(transaction)

    def durable(self, group: str, transaction: TransactionId) -> list[TransactionId]:
        """A decision is durable. Returns the transactions that may be applied now, in order."""
        self._ready.add(transaction)
        return self._release(group)

    def removed(self, group: str, transaction: TransactionId) -> list[TransactionId]:
        """A transaction is aborted after all. Returns those that may be applied now, in order."""
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


def by_rank(decided: Sequence[tuple[str, int, Item]]) -> list[tuple[int, Item]]:
    """The order in which to go on after a crash that came while transactions were applied, each item with its
    rank. `decided` has (group, rank, item), with each group in its own order. NO_RANK is the rank of a
    transaction that no partition has applied.

    Every partition has applied a prefix of what the broker meant to apply there. So transactions with a rank
    go on in the order of their ranks, or partitions would differ. One without a rank is in no log yet: it can
    go anywhere before the later ones of its group. If one of those has a rank, it takes that rank, as ranks
    never fall in a partition. The others stay without, and go last: they get ranks above all known ones.
    """
    latest: dict[str, float] = {}
    ranks = []
    for group, rank, _ in reversed(decided):
        latest[group] = min(latest.get(group, math.inf), math.inf if rank == NO_RANK else rank)
        ranks.append(latest[group])
    ranks.reverse()
    return [
        (NO_RANK if math.isinf(ranks[number]) else int(ranks[number]), decided[number][2])
        for number in sorted(range(len(decided)), key=ranks.__getitem__)
    ]
