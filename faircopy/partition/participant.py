"""A participant: one partition's part in transactions, as their coordinator sees it (docs/ARCHITECTURE.md,
Transactions).

A live `Partition` is one. A partition that is deleted, or that has failed, is another one: never None. Calls come in
the order of the coordinator's decisions, and may come again; each `done()` says that its entry is durable.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from faircopy.copier.fold import NO_RANK
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition

Done = Callable[[], None]


class Promise(Enum):
    """What a participant says of a transaction that its coordinator wants to commit, after a crash."""

    HELD = auto()  # it is prepared, and nothing of it is lost
    LOST = auto()  # it is not: so no ack was given
    KEPT = auto()  # it is applied already: so every participant had promised
    UNKNOWN = auto()  # the partition has failed, or nobody leads it: nobody can say
    NOT_NEEDED = auto()  # the partition is deleted, and takes no part any more


class Participant(Protocol):
    """What a coordinator asks of one partition."""

    def ensure_writable(self) -> None:
        """Raise what keeps it from promising."""

    def open_transaction(self, transaction: TransactionId, transactional_id: str) -> None:
        """Drafts of this producer belong to this transaction from now on."""

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """Promise: `done()` when all drafts and the promise are durable.

        All transactions of this producer up to number `finished` are over, here and elsewhere.
        """

    def apply(self, transaction: TransactionId, finished: int, rank: int, done: Done) -> None:
        """Make it visible. `rank` is its place in the order in which the coordinator has transactions applied."""

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        """Forget its drafts, and take nothing from its producer below `fence_epoch` any more."""

    def promise_of(self, transaction: TransactionId) -> Promise:
        """What became of the promise."""

    def rank_of(self, transaction: TransactionId) -> int:
        """The rank with which it was applied here; NO_RANK if it was not, or that is forgotten."""


Participants = Callable[[TopicIdPartition], Participant]
"""Finds a participant, as it is now."""


class Deleted:
    """The participant whose topic was deleted: it has nothing to keep, so it agrees to everything."""

    def ensure_writable(self) -> None:
        pass

    def open_transaction(self, transaction: TransactionId, transactional_id: str) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        done()

    def apply(self, transaction: TransactionId, finished: int, rank: int, done: Done) -> None:
        done()

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        done()

    def promise_of(self, transaction: TransactionId) -> Promise:
        return Promise.NOT_NEEDED

    def rank_of(self, transaction: TransactionId) -> int:
        return NO_RANK


DELETED = Deleted()


class NotLed(FaircopyError):
    """Nobody leads the partition now: ask again later."""


class Leaderless:
    """The participant that nobody leads now. Who leads it next is told what it has missed."""

    def ensure_writable(self) -> None:
        raise NotLed("a partition that takes part has no leader now: try again")

    def open_transaction(self, transaction: TransactionId, transactional_id: str) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """It can't promise, so `done` is never called."""

    def apply(self, transaction: TransactionId, finished: int, rank: int, done: Done) -> None:
        pass

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        pass

    def promise_of(self, transaction: TransactionId) -> Promise:
        return Promise.UNKNOWN

    def rank_of(self, transaction: TransactionId) -> int:
        return NO_RANK


LEADERLESS = Leaderless()


class Failed:
    """The participant that can't write before it is repaired. What it knows, it says."""

    def __init__(self, partition: Participant, name: str, failure: FaircopyError) -> None:
        self._partition = partition
        self._name = name
        self._failure = failure

    def ensure_writable(self) -> None:
        raise FaircopyError(f"{self._name}: {self._failure}")

    def open_transaction(self, transaction: TransactionId, transactional_id: str) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """It can't promise, so `done` is never called."""

    def apply(self, transaction: TransactionId, finished: int, rank: int, done: Done) -> None:
        """It has promised, so the transaction is not over before it is repaired, and is told again."""

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        # When it is repaired, nobody knows the transaction any more, and so it is discarded.
        done()

    def promise_of(self, transaction: TransactionId) -> Promise:
        known = self._partition.promise_of(transaction)
        return known if known is not Promise.LOST else Promise.UNKNOWN

    def rank_of(self, transaction: TransactionId) -> int:
        return self._partition.rank_of(transaction)
