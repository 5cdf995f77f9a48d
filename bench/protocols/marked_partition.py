"""A partition whose log holds all sent messages, and markers that end transactions, as in Kafka (KIP-98).

Fold: DRAFT is copied at once; APPLY and DISCARD put a COMMIT or ABORT marker into the log. Visibility: the
last stable offset is where the first open transaction begins; aborted transactions below it are kept in
memory for readers.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import Any, NamedTuple

from bench.protocols.aborted_transactions import AbortedTransaction
from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    NO_FENCE,
    NO_RANK,
    ApplyOrder,
    Branch,
    CopyBatch,
    PartitionState,
)
from faircopy.copier.producers import BranchOutcome
from faircopy.datalog.index import Place
from faircopy.datalog.read import ReadPlan
from faircopy.journal.entry import Entry, Kind, TransactionId
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import Done
from faircopy.partition.partition import Appended
from faircopy.storage.system import Buffer
from faircopy.wire.batch import CONTROL, BatchHeader
from faircopy.wire.records import NewRecord, build_batch, with_crc

ABORT, COMMIT = 0, 1
_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21


def marker(transaction: TransactionId, kind: int) -> bytes:
    """The control batch that ends a transaction."""
    batch = bytearray(
        build_batch(
            [NewRecord(_MARKER_VALUE.pack(0, 0), _MARKER_KEY.pack(0, kind))],
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transactional=True,
        )
    )
    attributes = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)[0]
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes | CONTROL)
    return with_crc(batch)


class Aborted(NamedTuple):
    """An aborted transaction in the log, and the last stable offset when its marker came."""

    last_offset: int
    producer_id: int
    first_offset: int
    stable_offset: int


class MarkedState(PartitionState):
    """The fold that copies drafts at once. It holds nothing back, so the journal can drop them."""

    def fold_draft(  # type: ignore[override]
        self, entry: Entry, header: BatchHeader | None, batch: Buffer
    ) -> CopyBatch:
        self.undecided.setdefault(entry.transaction, Branch())
        return self.fold_plain(entry, header, batch)

    def fold_apply(self, entry: Entry, order: ApplyOrder) -> CopyBatch | None:  # type: ignore[override]
        return self._end(
            entry, order.finished, BranchOutcome(entry.transaction, is_applied=True, rank=NO_RANK)
        )

    def fold_discard(self, entry: Entry, fence_epoch: int, finished: int) -> CopyBatch | None:  # type: ignore[override]
        effect = self._end(entry, finished, BranchOutcome(entry.transaction, is_applied=False, rank=NO_RANK))
        if fence_epoch != NO_FENCE:
            self._producer(entry.transaction.producer_id, entry.transaction.producer_epoch).fence(fence_epoch)
        return effect

    def _end(self, entry: Entry, finished: int, outcome: BranchOutcome) -> CopyBatch | None:
        known = self.branch(entry.transaction)
        self._advance(entry, finished)
        if known is not None and not known.is_undecided:
            return None
        self._decide(outcome)
        self.next_offset += 1
        return CopyBatch(entry, self.next_offset - 1)


class MarkedPartition(HostedPartition):
    """A partition whose log holds open and aborted transactions."""

    State = MarkedState
    state: MarkedState

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # In the order of the log, so the first one determines the last stable offset.
        self._open: dict[TransactionId, Place] = {}
        self._aborted: list[Aborted] = []

    # -- writing ---------------------------------------------------------------------------------------------

    def append_draft(
        self,
        batch: Buffer,
        header: BatchHeader | None,
        records: int,
        transaction: TransactionId,
        done: Appended,
        *,
        may_begin: bool = False,
    ) -> None:
        """Append a batch of an open transaction; `done(base offset)` when it is durable."""
        assert header is not None
        seen = self._producer(header, may_begin).find_duplicate(header, batch)
        if seen is not None:
            self._when_acked(lambda: done(seen.base_offset))
            return
        is_first = self.state.branch(transaction) is None
        effect = self.journal.append(
            Kind.DRAFT,
            batch,
            fold=lambda entry: self.state.fold_draft(entry, header, batch),
            records=records,
            transaction=transaction,
        )

        def durable() -> None:
            if is_first:
                self.sink.push_barrier(lambda: self._begin(transaction))
            self.sink.push(effect, batch)

        self._copy_when_durable(durable)
        self._when_acked(lambda: done(effect.base_offset))

    def _copy_when_durable(self, copy: Done) -> None:
        self.journal.when_durable(copy)

    def _when_acked(self, ack: Done) -> None:
        self.journal.when_durable(ack)

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        self.close_transaction(transaction)
        effect = self.journal.append(
            Kind.APPLY,
            order.payload(transaction),
            fold=lambda entry: self.state.fold_apply(entry, order),
            transaction=transaction,
        )
        self._mark(transaction, effect, COMMIT, done)

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        self.close_transaction(transaction)
        payload = DISCARD_PAYLOAD.pack(fence_epoch, finished)
        effect = self.journal.append(
            Kind.DISCARD,
            payload,
            fold=lambda entry: self.state.fold_discard(entry, fence_epoch, finished),
            transaction=transaction,
        )
        self._mark(transaction, effect, ABORT, done)

    def _mark(self, transaction: TransactionId, effect: CopyBatch | None, kind: int, done: Done) -> None:
        def durable() -> None:
            if effect is not None:
                self.sink.push(effect, marker(transaction, kind))
                self.sink.push_barrier(lambda: self._end(transaction, effect.base_offset, kind))
            done()

        self.journal.when_durable(durable)

    # -- the last stable offset ------------------------------------------------------------------------------

    def _begin(self, transaction: TransactionId) -> None:
        """The transaction's first batch is the next in the log."""
        self._open[transaction] = self.log.place_of_end()

    def _end(self, transaction: TransactionId, marker_offset: int, kind: int) -> None:
        """The transaction's marker is in the log."""
        first = self._open.pop(transaction, None)
        if kind == ABORT and first is not None:
            ended = Aborted(marker_offset, transaction.producer_id, first.offset, self.stable_offset)
            self._aborted.append(ended)
        self.log.notify()

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def stable_offset(self) -> int:
        """The last stable offset: below it, every transaction is committed or aborted."""
        first = next(iter(self._open.values()), None)
        return self.log.end_offset if first is None else first.offset

    def stable_part(self, plan: ReadPlan) -> ReadPlan | None:
        """The part of the plan below the last stable offset; None if there is none."""
        first = next(iter(self._open.values()), None)
        if first is None:
            return plan
        if plan.offset >= first.offset:
            return None
        if plan.segment.base_offset != first.segment_base:
            return plan
        return plan._replace(visible_bytes=min(plan.visible_bytes, first.byte))

    @property
    def has_aborted(self) -> bool:
        """Whether any transaction was ever aborted here."""
        return bool(self._aborted)

    def aborted_in(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions with messages below `end_offset` and an ABORT marker from `first_offset` on."""
        found = []
        for aborted in self._aborted[bisect_left(self._aborted, (first_offset,)) :]:
            if aborted.first_offset < end_offset:
                found.append(AbortedTransaction(aborted.producer_id, aborted.first_offset))
            if aborted.stable_offset >= end_offset:
                break
        return found
