"""The fold of a data journal: entries in, state and effects out (docs/ARCHITECTURE.md, Journals).

Pure and deterministic. Live appends, recovery and followers call the same methods. An effect belongs to the
entry that caused it, and must not be carried out before that entry is durable (I2). For an entry that can't
follow those before it, InvariantViolation is raised, and nothing is changed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from faircopy.copier.producer_table import ProducerTable
from faircopy.copier.producers import (
    BranchOutcome,
    ProducerState,
    SeenBatch,
    fingerprint_of,
)
from faircopy.errors import InvariantViolation, invariant
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.system import Buffer
from faircopy.wire.batch import BatchHeader, read_header

PREPARED_PAYLOAD = struct.Struct("<Iq")  # drafts, finished number
APPLY_PAYLOAD = struct.Struct("<qq")  # finished number, rank; LEAD follows if the lead is another
LEAD = struct.Struct("<qhq")  # producer id, epoch and number of the lead
DISCARD_PAYLOAD = struct.Struct("<hq")  # epoch below which the producer is fenced, finished number
TRIM_PAYLOAD = struct.Struct("<q")  # log start offset
FORGET_PAYLOAD = struct.Struct("<q")  # producer id, repeated
NOTHING_FINISHED = -1
NO_RANK = -1
NOBODY = -1
NO_FENCE = -1
"""In a DISCARD after a crash: the producer keeps its epoch, and may send any sequence, as some were lost."""
PRODUCERS_MAX = 100_000


class Standing(IntEnum):
    """The state of a transaction in one partition."""

    OPEN = 0
    PREPARED = 1
    APPLIED = 2
    DISCARDED = 3


class ApplyOrder(NamedTuple):
    """What a coordinator says when it has a transaction applied.

    `finished`: this producer's transactions up to that number are over. `rank`: the place in the order in
    which coordinators have transactions applied; ranks never fall in a partition. `lead`: the transaction
    that readers are shown as its name. Transactions that commit as one share rank and lead.
    """

    finished: int
    rank: int
    lead: TransactionId

    def payload(self, transaction: TransactionId) -> bytes:
        """The payload of this transaction's APPLY."""
        head = APPLY_PAYLOAD.pack(self.finished, self.rank)
        return head if self.lead == transaction else head + LEAD.pack(*self.lead)


def read_apply(payload: bytes | memoryview, transaction: TransactionId) -> ApplyOrder:
    """The order in the payload of a transaction's APPLY."""
    finished, rank = APPLY_PAYLOAD.unpack_from(payload)
    if len(payload) == APPLY_PAYLOAD.size:
        return ApplyOrder(finished, rank, transaction)
    return ApplyOrder(finished, rank, TransactionId._make(LEAD.unpack(payload[APPLY_PAYLOAD.size :])))


class Branch:
    """What a transaction has done in one partition. The drafts themselves are on the journal's reverse list.

    `rank` is set once it is applied: its place in the order in which the coordinator had transactions
    applied.
    """

    __slots__ = ("drafts", "first", "head", "rank", "records", "size", "standing")

    def __init__(
        self,
        standing: Standing = Standing.OPEN,
        head: int = NOWHERE,
        first: int = NOWHERE,
        drafts: int = 0,
        records: int = 0,
        size: int = 0,
        rank: int = NO_RANK,
    ) -> None:
        self.standing = standing
        self.head = head
        self.first = first
        self.drafts = drafts
        self.records = records
        self.size = size
        self.rank = rank

    @property
    def is_undecided(self) -> bool:
        """Whether it may still be applied or discarded."""
        return self.standing <= Standing.PREPARED


class CopyBatch(NamedTuple):
    """Effect of PLAIN: the batch goes into the log at `base_offset`."""

    entry: Entry
    base_offset: int


class CopyTransaction(NamedTuple):
    """Effect of APPLY: the drafts on the list that ends at `head` go into the log, from `base_offset` on.

    `size` counts the bytes of their record batches. `leader_epoch` is the epoch of the APPLY entry; the
    batches carry it in the log. `rank` and `lead` are those of its `ApplyOrder`.
    """

    transaction: TransactionId
    head: int
    base_offset: int
    drafts: int
    records: int
    size: int
    leader_epoch: int
    rank: int
    lead: TransactionId


class MoveStart(NamedTuple):
    """Effect of TRIM: the log starts at `start_offset`."""

    start_offset: int


Effect = CopyBatch | CopyTransaction | MoveStart


class PartitionState:
    """The state of one partition's journal.

    `undecided`: the transactions that may still be applied or discarded. Their producers know how the others
    ended; `outcomes` counts those. `forgotten_producer_id`: producers up to this id may have been forgotten,
    to make room for newer ones. `epochs`: the leader epochs of its entries, each with the offset that was
    next when it began. `changed_...`: what the next checkpoint has to store.
    """

    def __init__(self) -> None:
        self.position = 0
        self.start_offset = 0
        self.next_offset = 0
        self.epochs = Epochs()
        self.producers = ProducerTable()
        self.forgotten_producer_id = NOBODY
        self.undecided: dict[TransactionId, Branch] = {}
        self.outcomes = 0
        self.prepared: set[TransactionId] = set()
        self.changed_producers: set[int] = set()
        self.changed_transactions: set[TransactionId] = set()

    def fold(self, entry: Entry, payload: bytes | memoryview, *, has_batches: bool = True) -> Effect | None:
        """Fold an entry that was read from the journal. `has_batches` is false if payloads are not record
        batches.
        """
        match entry.kind:
            case Kind.PLAIN:
                return self.fold_plain(entry, read_header(payload) if has_batches else None, payload)
            case Kind.DRAFT:
                self.fold_draft(entry, read_header(payload) if has_batches else None, payload)
                return None
            case Kind.PREPARED:
                self.fold_prepared(entry, PREPARED_PAYLOAD.unpack(payload)[1])
                return None
            case Kind.REOPEN:
                self.fold_reopen(entry)
                return None
            case Kind.APPLY:
                return self.fold_apply(entry, read_apply(payload, entry.transaction))
            case Kind.DISCARD:
                self.fold_discard(entry, *DISCARD_PAYLOAD.unpack(payload))
                return None
            case Kind.TRIM:
                return self.fold_trim(entry, *TRIM_PAYLOAD.unpack(payload))
            case Kind.FORGET_PRODUCERS:
                self.fold_forget(entry, (fields[0] for fields in FORGET_PAYLOAD.iter_unpack(payload)))
                return None
        raise InvariantViolation(f"an entry of kind {entry.kind} is not one of a data journal")

    def fold_plain(self, entry: Entry, header: BatchHeader | None, batch: Buffer) -> CopyBatch:
        """Give a plain batch the next offsets. `header` is None if payloads are not record batches."""
        if entry.leader_epoch != self.epochs.starts[-1].epoch:
            self._note_epoch(entry)
        base_offset = self.next_offset
        self.next_offset += entry.records
        self.position = entry.position + entry.length
        if header is not None and header.producer_id >= 0:
            self._note(header, batch, base_offset)
        return CopyBatch(entry, base_offset)

    def fold_draft(self, entry: Entry, header: BatchHeader | None, batch: Buffer) -> int:
        """Put a draft on its transaction's list, and return its expected base offset: the one it gets if
        nobody else writes to this partition before the commit. It never gets a lower one.
        """
        transaction = self._undecided(entry)
        invariant(transaction.standing is Standing.OPEN, "a draft joins only an open transaction")
        invariant(
            entry.previous == transaction.head < entry.position, "I3: each hop goes to the draft before"
        )
        if entry.leader_epoch != self.epochs.starts[-1].epoch:
            self._note_epoch(entry)
        self.undecided[entry.transaction] = transaction
        expected_offset = self.next_offset + transaction.records
        transaction.head = entry.position
        transaction.drafts += 1
        transaction.records += entry.records
        transaction.size += entry.payload_bytes
        self.changed_transactions.add(entry.transaction)
        self.position = entry.position + entry.length
        if header is not None:
            self._note(header, batch, expected_offset)
        return expected_offset

    def fold_prepared(self, entry: Entry, finished: int) -> None:
        """Note the promise to apply a transaction. The producer's transactions up to `finished` are over."""
        transaction = self._undecided(entry)
        self._advance(entry, finished)
        self.undecided[entry.transaction] = transaction
        transaction.standing = Standing.PREPARED
        self.prepared.add(entry.transaction)

    def fold_reopen(self, entry: Entry) -> None:
        """Take a promise back: its transaction goes on."""
        transaction = self.undecided.get(entry.transaction)
        if transaction is None or transaction.standing is not Standing.PREPARED:
            raise InvariantViolation("only a promise is taken back")
        self._advance(entry, NOTHING_FINISHED)
        transaction.standing = Standing.OPEN
        self.prepared.discard(entry.transaction)

    def fold_apply(self, entry: Entry, order: ApplyOrder) -> CopyTransaction | None:
        """Give a transaction its offsets, and return the effect that copies it. None if there is nothing to
        copy: the transaction is unknown, is applied already, or has no drafts.
        """
        outcome = self._outcome_of(entry.transaction)
        invariant(outcome is None or outcome.is_applied, "I4: what was discarded is never applied")
        self._advance(entry, order.finished)
        transaction = self.undecided.get(entry.transaction)
        if transaction is None:
            return None
        effect = CopyTransaction(
            entry.transaction,
            transaction.head,
            self.next_offset,
            transaction.drafts,
            transaction.records,
            transaction.size,
            entry.leader_epoch,
            order.rank,
            order.lead,
        )
        self.next_offset += transaction.records
        self._decide(BranchOutcome(entry.transaction, is_applied=True, rank=order.rank))
        return effect if effect.drafts else None

    def fold_discard(self, entry: Entry, fence_epoch: int, finished: int) -> None:
        """Drop a transaction, and fence its producer below `fence_epoch`, unless that is NO_FENCE. If the
        producer keeps its epoch, its next batches may have the sequences of those that are dropped.
        """
        outcome = self._outcome_of(entry.transaction)
        invariant(outcome is None or not outcome.is_applied, "I4: what was applied is never discarded")
        self._advance(entry, finished)
        branch = self.undecided.get(entry.transaction)
        producer = self._decide(BranchOutcome(entry.transaction, is_applied=False, rank=NO_RANK))
        if fence_epoch == NO_FENCE:
            producer.forget_sequences()
        elif fence_epoch > producer.epoch:
            producer.fence(fence_epoch)
        elif entry.transaction.producer_epoch == producer.epoch:
            producer.drop(branch.drafts if branch is not None else 0)

    def fold_trim(self, entry: Entry, start_offset: int) -> MoveStart:
        """Move the start of the log up to `start_offset`: never down, and never past the next offset."""
        if entry.leader_epoch != self.epochs.starts[-1].epoch:
            self._note_epoch(entry)
        self.start_offset = max(self.start_offset, min(start_offset, self.next_offset))
        self.epochs = self.epochs.trim(self.start_offset)
        self.position = entry.end
        return MoveStart(self.start_offset)

    def fold_forget(self, entry: Entry, producer_ids: Iterable[int]) -> None:
        """Forget producers whose transactional ids have expired, and how their transactions ended."""
        if entry.leader_epoch != self.epochs.starts[-1].epoch:
            self._note_epoch(entry)
        self.position = entry.end
        for producer_id in producer_ids:
            producer = self.producers.pop(producer_id)
            if producer is not None:
                self.changed_producers.add(producer_id)
                self.outcomes -= len(producer.outcomes)

    def _note_epoch(self, entry: Entry) -> None:
        """Note that another leader has written. Call only then, before its entry moves the next offset."""
        self.epochs = self.epochs.note(entry.leader_epoch, self.next_offset)

    def _advance(self, entry: Entry, finished: int) -> None:
        if entry.leader_epoch != self.epochs.starts[-1].epoch:
            self._note_epoch(entry)
        self.position = entry.end
        self.changed_transactions.add(entry.transaction)
        self._forget_finished(entry.transaction.producer_id, finished)

    def branch(self, transaction: TransactionId) -> Branch | None:
        """A transaction as known here: its drafts, or only how it ended. None if it is not known."""
        undecided = self.undecided.get(transaction)
        if undecided is not None:
            return undecided
        outcome = self._outcome_of(transaction)
        if outcome is None:
            return None
        return Branch(Standing.APPLIED if outcome.is_applied else Standing.DISCARDED, rank=outcome.rank)

    def producers_with_transactions(self) -> set[int]:
        """The ids of the producers of all transactions of which at least the outcome is known."""
        return {each.producer_id for each in self.undecided} | self.producers.with_outcomes()

    def _undecided(self, entry: Entry) -> Branch:
        """The transaction of an entry that only an undecided one may have; it may be new."""
        transaction = self.undecided.get(entry.transaction)
        if transaction is None:
            invariant(self._outcome_of(entry.transaction) is None, "what is decided stays as it is")
            return Branch(first=entry.position)
        return transaction

    def _outcome_of(self, transaction: TransactionId) -> BranchOutcome | None:
        producer = self.producers.get(transaction.producer_id)
        return producer.outcomes.get(transaction) if producer is not None else None

    def _decide(self, outcome: BranchOutcome) -> ProducerState:
        """Keep the outcome until the coordinator has stored it: until then it may ask or decide again.
        Returns the producer, which counts as changed.
        """
        producer_id, epoch, _ = transaction = outcome.transaction
        producer = self._producer(producer_id, epoch)
        self.undecided.pop(transaction, None)
        self.prepared.discard(transaction)
        if transaction not in producer.outcomes:
            producer.outcomes[transaction] = outcome
            self.outcomes += 1
        self.changed_producers.add(producer_id)
        return producer

    def _forget_finished(self, producer_id: int, finished: int) -> None:
        producer = self.producers.get(producer_id)
        if producer is not None and (over := producer.forget_outcomes(finished)):
            self.outcomes -= over
            self.changed_producers.add(producer_id)

    def _note(self, header: BatchHeader, batch: Buffer, base_offset: int) -> None:
        producer = self._producer(header.producer_id, header.producer_epoch)
        seen = SeenBatch(header.base_sequence, header.last_sequence, base_offset)
        if producer.follows_abort and header.producer_epoch == producer.epoch:
            seen = seen._replace(fingerprint=fingerprint_of(header, batch))
        producer.note(header.producer_epoch, seen, self.position)
        self.changed_producers.add(header.producer_id)

    def producer(self, producer_id: int, epoch: int) -> ProducerState:
        """A producer as known here; if unknown, its state before its first batch, of this epoch."""
        known = self.producers.get(producer_id)
        if known is not None:
            return known
        return ProducerState(
            epoch, last_position=self.position, is_forgotten=producer_id <= self.forgotten_producer_id
        )

    def _producer(self, producer_id: int, epoch: int) -> ProducerState:
        producer = self.producers.get(producer_id)
        if producer is None:
            # Producers with transactions here stay. Each has at least one, so the numbers of transactions
            # cover them.
            if len(self.producers) >= PRODUCERS_MAX + len(self.undecided) + self.outcomes:
                self._forget_oldest_producers()
            producer = self.producer(producer_id, epoch)
            self.producers.add(producer_id, producer)
            self.changed_producers.add(producer_id)
        return producer

    def _forget_oldest_producers(self) -> None:
        """Keep sequences for the newest producers only. Every fold of these entries forgets the same ones."""
        busy = self.producers_with_transactions()
        idle = sorted(each for each in self.producers.last_positions() if each[1] not in busy)
        for _, producer_id in idle[: PRODUCERS_MAX // 10]:
            self.producers.pop(producer_id)
            self.forgotten_producer_id = max(self.forgotten_producer_id, producer_id)
            self.changed_producers.add(producer_id)

    @property
    def first_needed_position(self) -> int:
        """The position of the first entry of any undecided transaction, or the tail if there is none (I7)."""
        firsts = (each.first for each in self.undecided.values() if each.first != NOWHERE)
        return min(firsts, default=self.position)
