"""What a request may do to a transaction: the entries to append, or a refusal.

Pure. Each function is given what the table knows, and changes nothing: appending an entry folds it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping

from faircopy.errors import FaircopyError
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.joint_group import NO_KEY
from faircopy.transactions.state import ABORT_STATES, COMMIT_STATES
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import (
    MAX_EPOCH,
    MEMBER_PREFIX,
    NOBODY,
    NewEntry,
    Producer,
    Transaction,
    is_member_id,
)
from faircopy.wire.error_codes import ErrorCode


class TransactionRefused(FaircopyError):
    """A request does not fit the state of its transactional id. Nothing was changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def asked_again() -> Iterator[None]:
    """JournalFull becomes a refusal after which clients ask again: TransactionRefused."""
    try:
        yield
    except JournalFull as error:
        raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error


# -- who asks ------------------------------------------------------------------------------------------------


def newest_producer(
    table: TransactionTable, transactional_id: str, producer_id: int, epoch: int, fenced: ErrorCode
) -> Producer:
    """The transactional id's producer, if the caller is its newest instance. `fenced` is the code for a
    zombie.

    Raises TransactionRefused.
    """
    producer = table.producers.get(transactional_id)
    if producer is None or producer.producer_id != producer_id:
        raise TransactionRefused(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {transactional_id!r} does not belong to producer {producer_id}: "
            f"call InitProducerId",
        )
    if producer.epoch != epoch:
        raise TransactionRefused(
            fenced,
            f"producer epoch {epoch} of transactional id {transactional_id!r} is fenced; the newest is "
            f"{producer.epoch}",
        )
    return producer


def ensure_told(producer: Producer) -> None:
    """Raise TransactionRefused unless the instance knows what became of all its transactions."""
    if producer.must_abort:
        raise TransactionRefused(
            ErrorCode.TRANSACTION_ABORTABLE,
            f"the broker has aborted the open transaction of {producer.transactional_id!r}, and its log says "
            f"why: abort it, and begin it again",
        )


def ensure_may_begin(producer: Producer) -> None:
    """Raise TransactionRefused for a member of a joint group whose key is decided: it writes for one key."""
    if producer.ending and is_keyed(producer):
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"{producer.transactional_id!r} has written for one key of its joint group, which is decided: "
            f"join again for another",
        )


def ensure_ends_alone(producer: Producer) -> None:
    """Raise TransactionRefused for a member of a joint group that wants to commit its part on its own."""
    if is_keyed(producer):
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"{producer.transactional_id!r} writes for a joint group, which commits for all of its members",
        )


def is_keyed(producer: Producer) -> bool:
    """Whether it is a member of a joint group that writes for a key."""
    return producer.membership is not None and producer.membership.key != NO_KEY


# -- fencing -------------------------------------------------------------------------------------------------


def ensure_may_fence(producer: Producer, caller: tuple[int, int]) -> None:
    """Raise TransactionRefused unless a caller that names its old identity is the newest instance, or is the
    previous one and no other has come since (KIP-360).
    """
    if caller[0] < 0 or caller == producer.identity:
        return
    previous = (producer.producer_id, producer.previous_epoch)
    if producer.previous_epoch == NOBODY or caller != previous:
        raise TransactionRefused(
            ErrorCode.PRODUCER_FENCED,
            f"producer {caller[0]} epoch {caller[1]} of {producer.transactional_id!r} is fenced by a "
            f"newer instance",
        )


def ensure_no_member(producer: Producer | None, transactional_id: str) -> None:
    """Raise TransactionRefused for a member of a joint group: it gets its producer id by joining."""
    if producer is not None and producer.membership is not None:
        raise TransactionRefused(
            ErrorCode.INVALID_REQUEST,
            f"{transactional_id!r} is a member of a joint group: join the group again instead",
        )
    if is_member_id(transactional_id):
        raise TransactionRefused(
            ErrorCode.INVALID_REQUEST,
            f"{transactional_id!r} is reserved for a member of a joint group: take another name, without "
            f"{MEMBER_PREFIX} after its first slash",
        )


def next_epoch(producer: Producer) -> int | None:
    """The epoch that fences the producer's present instance; None if a new producer id is needed."""
    return producer.epoch + 1 if producer.epoch < MAX_EPOCH else None


def new_instance(
    producer: Producer | None,
    transactional_id: str,
    caller: tuple[int, int],
    fresh_id: int,
    timeout_ms: int,
    now_ms: int,
    *,
    is_durable: bool = False,
) -> NewEntry:
    """The entry for InitProducerId, which fences the present instance. `fresh_id` is the producer id for a
    transactional id that has none, or whose epochs are used up. If the instance `is_durable`, its
    transactions are fsynced before it is told that they have begun. Raises TransactionRefused.
    """
    identity = (fresh_id, 0)
    ensure_no_member(producer, transactional_id)
    if producer is not None:
        ensure_may_fence(producer, caller)
        epoch = next_epoch(producer)
        if epoch is not None:
            identity = (producer.producer_id, epoch)
    # The answer may be lost, and then the same instance asks again.
    previous_epoch = caller[1] if caller[0] == identity[0] else NOBODY
    return fence(transactional_id, *identity, timeout_ms, now_ms, previous_epoch, is_durable=is_durable)


def fence(
    transactional_id: str,
    producer_id: int,
    epoch: int,
    timeout_ms: int,
    now_ms: int,
    previous_epoch: int = NOBODY,
    *,
    is_durable: bool = False,
) -> NewEntry:
    """The entry that gives a transactional id its next producer id and epoch, and aborts what is open."""
    payload = {
        "id": transactional_id, "timeout_ms": timeout_ms, "pardoned": previous_epoch, "at_ms": now_ms,
        "told": False, "durable": is_durable,
    }  # fmt: skip
    return NewEntry(Kind.FENCE, TransactionId(producer_id, epoch, -1), payload)


def expire(producer: Producer, now_ms: int) -> NewEntry:
    """The entry that aborts a transaction past its timeout. It fences the producer, which must not go on
    unaware of the abort. The producer may come back if no other instance has come since (KIP-588).
    """
    epoch = min(producer.epoch + 1, MAX_EPOCH + 1)
    return fence(
        producer.transactional_id, producer.producer_id, epoch, producer.timeout_ms, now_ms, producer.epoch,
        is_durable=producer.is_durable,
    )  # fmt: skip


# -- an open transaction -------------------------------------------------------------------------------------


def add(
    producer: Producer,
    leader_epochs: Mapping[TopicIdPartition, int],
    number: int,
    now_ms: int,
    durable_in: Collection[TopicIdPartition] = (),
) -> list[NewEntry]:
    """The entries that add partitions, each with its leader's epoch; the first ones begin transaction
    `number`. Those in `durable_in` ack drafts once they are fsynced. A partition that takes part already
    stays as it was added first.

    Raises TransactionRefused.
    """
    ensure_told(producer)
    entries = []
    if producer.current is None:
        ensure_may_begin(producer)
        transaction = TransactionId(producer.producer_id, producer.epoch, number)
        begin = {"id": producer.transactional_id, "timeout_ms": producer.timeout_ms, "at_ms": now_ms}
        entries.append(NewEntry(Kind.BEGIN, transaction, begin))
        known: Iterable[TopicIdPartition] = ()
    else:
        transaction, known = producer.current.id, producer.current.epochs
    missing = {each: epoch for each, epoch in leader_epochs.items() if each not in known}
    if missing:
        entries.append(added(transaction, missing, durable_in))
    return entries


def added(
    transaction: TransactionId,
    leader_epochs: Mapping[TopicIdPartition, int],
    durable_in: Collection[TopicIdPartition] = (),
) -> NewEntry:
    """The entry that adds partitions to an open transaction, each with its leader's epoch. See `add`."""
    partitions = [
        [*partition, epoch, True] if partition in durable_in else [*partition, epoch]
        for partition, epoch in leader_epochs.items()
    ]
    return NewEntry(Kind.ADD, transaction, {"partitions": partitions})


def end(producer: Producer, now_ms: int, *, commit: bool) -> NewEntry | None:
    """The entry that ends the open transaction; None if an equal request has already ended it.

    Raises TransactionRefused.
    """
    if commit:
        ensure_ends_alone(producer)
    if producer.must_abort:
        return _tell(producer, now_ms, commit=commit)
    if producer.current is not None:
        return prepare_commit(producer.current) if commit else prepare_abort(producer.current, producer.epoch)
    if producer.last_state in (COMMIT_STATES if commit else ABORT_STATES):
        return None
    asked = "commit" if commit else "abort"
    raise TransactionRefused(
        ErrorCode.INVALID_TXN_STATE,
        f"transactional id {producer.transactional_id!r} has no open transaction to {asked}; "
        f"its state is {producer.state_name}",
    )


def _tell(producer: Producer, now_ms: int, *, commit: bool) -> NewEntry:
    """The entry for a producer that must abort. A commit is refused: it may repeat that of its last
    transaction, or be meant for one that was lost.
    """
    if commit and producer.last_state in COMMIT_STATES:
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"the broker was restarted after a loss of power, and can't tell which transaction "
            f"{producer.transactional_id!r} wants to commit: its last one is committed, a later one is lost",
        )
    if commit:
        ensure_told(producer)
    # From now on, another abort is a repetition of this one.
    entry = fence(
        producer.transactional_id, *producer.identity, producer.timeout_ms, now_ms,
        is_durable=producer.is_durable,
    )  # fmt: skip
    return entry._replace(payload=entry.payload | {"told": True})


def prepare_commit(transaction: Transaction) -> NewEntry:
    """The entry that decides to commit, once it and every participant's PREPARED are durable (I5)."""
    return NewEntry(Kind.PREPARE_COMMIT, transaction.id, {"partitions": transaction.participants})


def prepare_abort(transaction: Transaction, fence_epoch: int, *, untold: bool = False) -> NewEntry:
    """The entry that decides to abort; `untold` if its producer neither asked for it nor is fenced."""
    payload = {"partitions": transaction.participants, "fence": fence_epoch, "untold": untold}
    return NewEntry(Kind.PREPARE_ABORT, transaction.id, payload)


def forget(producer: Producer) -> NewEntry:
    """The entry that forgets a transactional id."""
    transaction = TransactionId(producer.producer_id, producer.epoch, -1)
    return NewEntry(Kind.FORGET, transaction, {"id": producer.transactional_id})
