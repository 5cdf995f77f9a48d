"""A participant: one partition's part in transactions, as their coordinator sees it (docs/ARCHITECTURE.md,
Transactions).

A live `Partition` is a participant. Deleted, leaderless and failed partitions have participants of their own:
never None. Calls come in the order of the coordinator's decisions, and may be repeated. `done()` says that
the call's entry is durable.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from faircopy.copier.fold import NO_RANK, ApplyOrder
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition

Done = Callable[[], None]


class Promise(Enum):
    """A participant's answer, after a crash, about a transaction that its coordinator wants to commit."""

    HELD = auto()  # it is prepared, and none of it is lost
    NOT_GIVEN = auto()  # it is not prepared, so no ack was sent
    LOST = auto()  # it is discarded, so no ack was sent
    KEPT = auto()  # it is applied already, so every participant had promised
    UNKNOWN = auto()  # the partition has failed or has no leader, so nobody can tell
    NOT_NEEDED = auto()  # the partition is deleted, and no longer takes part


class Participant(Protocol):
    """What a coordinator asks of one partition."""

    def ensure_writable(self) -> None:
        """Raise the error that keeps it from promising, if there is one."""

    def open_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        """Drafts of this producer belong to this transaction from now on, and are acked when they are
        durable (`is_durable`), or else when they are kept.
        """

    def resume_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        """An open transaction goes on after a crash. A promise that was not needed is taken back."""

    def close_transaction(self, transaction: TransactionId) -> None:
        """Accept no more drafts of it. What becomes of it is said later."""

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """Promise to apply the transaction. Calls `done()` when all drafts and the promise are durable.

        All transactions of this producer up to number `finished` are over, here and elsewhere.
        """

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        """Make it visible, after all that were applied before it."""

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        """Forget its drafts, and accept nothing more from its producer below `fence_epoch`."""

    def promise_of(self, transaction: TransactionId) -> Promise:
        """The state of the promise."""

    def rank_of(self, transaction: TransactionId) -> int:
        """The rank with which it was applied here; NO_RANK if it was not applied, or that is forgotten."""


Participants = Callable[[TopicIdPartition], Participant]
"""Finds a participant in its present state."""


class Deleted:
    """A participant whose topic was deleted. It has nothing to keep, so it agrees to everything."""

    def ensure_writable(self) -> None:
        pass

    def open_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def resume_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def close_transaction(self, transaction: TransactionId) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        done()

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        done()

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        done()

    def promise_of(self, transaction: TransactionId) -> Promise:
        return Promise.NOT_NEEDED

    def rank_of(self, transaction: TransactionId) -> int:
        return NO_RANK


DELETED = Deleted()


class NotLed(FaircopyError):
    """The partition has no leader now: ask again later."""


class Leaderless:
    """A participant without a leader now. Its next leader is told what it has missed."""

    def ensure_writable(self) -> None:
        raise NotLed("a partition of this transaction has no leader now: try again")

    def open_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def resume_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def close_transaction(self, transaction: TransactionId) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """It can't promise, so `done` is never called."""

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        pass

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        pass

    def promise_of(self, transaction: TransactionId) -> Promise:
        return Promise.UNKNOWN

    def rank_of(self, transaction: TransactionId) -> int:
        return NO_RANK


LEADERLESS = Leaderless()


class Failed:
    """A participant that can't write until it is repaired. It still answers from what it knows."""

    def __init__(self, partition: Participant, name: str, failure: FaircopyError) -> None:
        self._partition = partition
        self._name = name
        self._failure = failure

    def ensure_writable(self) -> None:
        raise FaircopyError(f"{self._name}: {self._failure}")

    def open_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def resume_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        pass

    def close_transaction(self, transaction: TransactionId) -> None:
        pass

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """It can't promise, so `done` is never called."""

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        """Never calls `done`: it has promised, so the transaction stays open until it is repaired."""

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        # By the time it is repaired, nobody knows the transaction any more, so it is discarded.
        done()

    def promise_of(self, transaction: TransactionId) -> Promise:
        known = self._partition.promise_of(transaction)
        return known if known in (Promise.HELD, Promise.KEPT) else Promise.UNKNOWN

    def rank_of(self, transaction: TransactionId) -> int:
        return self._partition.rank_of(transaction)
