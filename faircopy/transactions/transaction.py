"""A transaction and its producer, as their coordinator sees them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.joint_group import Membership
from faircopy.transactions.metadata_entry import Payload
from faircopy.transactions.state import TransactionState

NOBODY = -1
NO_PARTITIONS: frozenset[TopicIdPartition] = frozenset()
MEMBER_PREFIX = "__member-"  # as Kafka marks names that are not for clients
MAX_EPOCH = 32766  # as in Kafka, the last epoch is held back, so that a fence can always be one higher


class BranchId(NamedTuple):
    """One transaction's part in one partition."""

    transaction: TransactionId
    partition: TopicIdPartition


class Transaction:
    """One transaction as its coordinator sees it.

    `epochs` has the participants, each with its leader's epoch when it was added. `fence_epoch` is for the
    DISCARDs of an aborted transaction. Transactions that one decision commits together have a *lead*, which
    stands for all of them: it has the others in `joined`, and each of these has `lead`.

    `durable_in` has the participants that ack its drafts once they are fsynced; `begins_durably` says whether
    its producer `is_durable`.
    """

    __slots__ = (
        "begins_durably",
        "durable_in",
        "epochs",
        "fence_epoch",
        "id",
        "joined",
        "lead",
        "prepared_position",
        "started_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(
        self, transaction: TransactionId, transactional_id: str, timeout_ms: int, started_ms: int
    ) -> None:
        self.id = transaction
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.started_ms = started_ms
        self.state = TransactionState.ONGOING
        self.epochs: dict[TopicIdPartition, int] = {}
        self.durable_in = NO_PARTITIONS
        self.begins_durably = False
        self.prepared_position = -1
        self.fence_epoch = transaction.producer_epoch
        self.lead: TransactionId | None = None
        self.joined: tuple[Transaction, ...] = ()

    @property
    def group(self) -> str:
        """The group of its transactional id, see `group_of`."""
        return group_of(self.transactional_id)

    @property
    def needs_durable(self) -> bool:
        """Whether its entries must be fsynced before anybody is told of them: acked drafts rest on them."""
        return self.begins_durably or bool(self.durable_in)

    @property
    def is_durable(self) -> bool:
        """Whether everything that was acked in it survives a loss of power."""
        return self.needs_durable and self.durable_in.issuperset(self.epochs)

    @property
    def deadline_ms(self) -> int:
        """When it times out, by the steady clock."""
        return self.started_ms + self.timeout_ms

    @property
    def participants(self) -> list[TopicIdPartition]:
        """The partitions that take part, in the order in which they were added."""
        return list(self.epochs)

    @property
    def united(self) -> Iterator[Transaction]:
        """This transaction, and those that are decided with it."""
        yield self
        yield from self.joined

    @property
    def branches(self) -> list[BranchId]:
        """Its parts in partitions, and those of the transactions that are decided with it."""
        return [BranchId(each.id, partition) for each in self.united for partition in each.epochs]


class Producer:
    """One transactional id: its producer id and epoch, and the transactions that are not over.

    `previous_epoch`: an instance with this epoch may still ask for the newest one. It has asked before and
    may not have heard the answer, or a timeout has fenced it and no other instance has come since (KIP-360,
    KIP-588).

    `must_abort`: the broker has aborted the newest instance's transaction, or may have lost it, and the
    instance does not know. It must abort before anything else, or it could commit the rest as if it were the
    whole.

    `is_durable`: the beginnings of its transactions are fsynced before it is told of them.

    `membership`: the joint group to which it belongs, if it was made by a join.
    """

    __slots__ = (
        "__weakref__",
        "current",
        "ending",
        "epoch",
        "is_durable",
        "last_number",
        "last_state",
        "membership",
        "must_abort",
        "previous_epoch",
        "producer_id",
        "timeout_ms",
        "transactional_id",
        "updated_ms",
    )

    def __init__(self, transactional_id: str, producer_id: int, epoch: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.timeout_ms = timeout_ms
        self.previous_epoch = NOBODY
        self.must_abort = False
        self.is_durable = False
        self.current: Transaction | None = None
        self.ending: dict[TransactionId, Transaction] = {}
        self.last_state: TransactionState | None = None
        self.last_number = -1
        self.updated_ms = 0
        self.membership: Membership | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a transaction of it is not over."""
        return self.current is not None or bool(self.ending)

    @property
    def needs_durable(self) -> bool:
        """Whether it may be told that its transactions are over only once that is fsynced. Otherwise a loss
        of power could bring one back, and what it sends next would become a part of that.
        """
        return self.is_durable or any(each.needs_durable for each in self.ending.values())

    @property
    def is_safe(self) -> bool:
        """Whether a loss of power takes nothing of what it was told: not its open transaction, and not the
        beginning of a later one.
        """
        return self.is_durable or (self.current is not None and self.current.is_durable)

    @property
    def group(self) -> str:
        """The group of its transactional id, see `group_of`."""
        return group_of(self.transactional_id)

    @property
    def identity(self) -> tuple[int, int]:
        """Producer id and epoch."""
        return self.producer_id, self.epoch

    @property
    def state_name(self) -> str:
        """The state as Kafka's tools show it."""
        if self.current is not None:
            return self.current.state.value
        if self.ending:
            return next(reversed(self.ending.values())).state.value
        return self.last_state.value if self.last_state is not None else "Empty"


class NewEntry(NamedTuple):
    """An entry that a decision wants appended."""

    kind: Kind
    transaction: TransactionId
    payload: Payload


def member_id(joint_group: str, producer_id: int) -> str:
    """The transactional id of a member of a joint group: one that no client can take (`is_member_id`)."""
    return f"{joint_group}/{MEMBER_PREFIX}{producer_id}"


def is_member_id(transactional_id: str) -> bool:
    """Whether a transactional id is one of those that are reserved for members of joint groups."""
    return transactional_id.partition("/")[2].startswith(MEMBER_PREFIX)


def group_of(transactional_id: str) -> str:
    """G, the group of a transactional id: the part before the first `/`, or the whole id."""
    return transactional_id.split("/", 1)[0]
