"""One partition: its journal, the fold's state at the journal's tail, and the sink of its effects.

Requests enter through `append_*`, `trim`, `prepare`, `apply`, `discard` and `forget_producers`. Each folds an
entry, appends it, and hands its effect to the sink when the entry is durable (I2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, NamedTuple

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    NO_RANK,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    ApplyOrder,
    Branch,
    Effect,
    PartitionState,
    Standing,
)
from faircopy.copier.producers import ProducerState, RejectedBatch
from faircopy.copier.sink import Sink
from faircopy.errors import DoesNotFold, FaircopyError, InvariantViolation
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.partition.checkpointing import LET_GO_POLL_SECONDS, STARVED_POLL_SECONDS, Checkpointing
from faircopy.partition.name import PartitionName
from faircopy.partition.participant import DELETED, LEADERLESS, Done, Failed, NotLed, Participant, Promise
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.failures import Shortage
from faircopy.storage.state_store import StateStore
from faircopy.storage.system import Buffer
from faircopy.wire.batch import BatchHeader

FORGOTTEN_AT_ONCE = 10_000
PROMISES: dict[Standing | None, Promise] = {
    Standing.PREPARED: Promise.HELD,
    Standing.APPLIED: Promise.KEPT,
    Standing.DISCARDED: Promise.LOST,
}

Appended = Callable[[int], None]  # called with the base offset; for a draft, with the lowest it may get


class NoOpenTransaction(RejectedBatch):
    """A transactional batch arrived for a transaction that is not open here: late, or from a zombie."""


class InTransaction(RejectedBatch):
    """A plain batch names a producer whose transaction is open here. Its sequence would be taken for that of
    the producer's next draft.
    """


class Told(NamedTuple):
    """The transaction that a producer has open here, as told by its coordinator. `is_durable`: its drafts are
    acked when they are durable.
    """

    transaction: TransactionId
    transactional_id: str
    is_durable: bool


class Partition:
    """A partition that this broker leads. `State` is its fold.

    `acks_drafts_durably`: what transactions that begin here are told (`transactional.ack`).
    """

    State: ClassVar[type[PartitionState]] = PartitionState

    def __init__(
        self, name: PartitionName, partition_id: TopicIdPartition, journal: Journal, sink: Sink,
        store: StateStore, disk: DiskPool, *, has_batches: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self.id = partition_id
        self.identity = partition_id.identity
        self.journal = journal
        self.sink = sink
        self.state = self.State()
        self.failure: FaircopyError | None = None
        self.acks_drafts_durably = False
        self._checkpointing = Checkpointing(self.identity, journal, sink, store, disk)
        self._has_batches = has_batches
        self._told: dict[int, Told] = {}
        self._applying = 0
        self._counts_drafts = False

    # -- opening ---------------------------------------------------------------------------------------------

    def load(self) -> Checkpoint:
        """Restore the state of the last checkpoint, and return the checkpoint. Blocks. See `opening`."""
        checkpoint, state = self._checkpointing.load()
        if state is not None:
            self.state = state
        return checkpoint

    def fold_found(self, recovered: Recovered) -> Effect | None:
        """Fold an entry found after the checkpoint; return its effect, which whoever opens the partition
        carries out at once. Raises DoesNotFold.
        """
        try:
            return self.state.fold(recovered.entry, recovered.payload, has_batches=self._has_batches)
        except InvariantViolation as error:
            raise DoesNotFold(str(error)) from error

    # -- stopping --------------------------------------------------------------------------------------------

    def fail(self, error: FaircopyError) -> None:
        """Stop this partition. It serves nothing until the cause is repaired and the broker restarts (I9)."""
        self.failure = error
        self._checkpointing.fail(error)

    def stop_serving(self) -> None:
        """Stop leading: accept nothing from now on. A partition that is already stopped stays so."""
        if self.failure is None:
            self.failure = NotLed(f"{self.name} has no leader now: ask who leads it, and try again")

    async def retire(self) -> None:
        """Make everything that was accepted durable, and visible and checkpointed unless the partition is
        damaged. When this returns, nothing uses its files. Call it after `stop_serving`. On a full disk it
        waits for space. Raises StorageFailure.
        """
        await self._checkpointing.idle()
        while isinstance(self.failure, NotLed) and not await self._is_checkpointed():
            await asyncio.sleep(STARVED_POLL_SECONDS)
        await self.journal.durable()
        await self.let_go()
        self._give_back_all()
        self.journal.retire()
        if isinstance(self.failure, NotLed):
            self.sink.retire()

    async def _is_checkpointed(self) -> bool:
        """Checkpoint. False if there is no space for it. A partition found damaged meanwhile needs none."""
        try:
            await self._checkpointing.make(self.state)
        except (JournalFull, Shortage):
            return False
        except FaircopyError as error:
            if error is not self.failure:
                raise
        return True

    def abandon(self, error: FaircopyError) -> None:
        """Stop this partition because it is deleted. Its files may be deleted once `let_go` returns."""
        self.fail(error)
        self._give_back_all()
        self.journal.abandon()

    async def let_go(self) -> None:
        """Wait until nothing uses the files of an abandoned partition."""
        while self.is_at_work:
            await asyncio.sleep(LET_GO_POLL_SECONDS)

    @property
    def is_at_work(self) -> bool:
        """Whether a thread or a checkpoint uses this partition's files."""
        return self._checkpointing.is_at_work or self.journal.is_at_work

    def ensure_readable(self) -> None:
        """Raise what stopped this partition, if it is stopped."""
        if self.failure is not None:
            raise self.failure

    def ensure_sound(self) -> None:
        """Raise what stopped this partition, or JournalFull, if it can't accept anything new now."""
        if self.failure is not None:
            raise self.failure
        self.journal.ensure_space()

    def ensure_writable(self) -> None:
        """Like `ensure_sound`, for what a full disk must still accept, and other replicas need not have yet:
        decisions.
        """
        if self.failure is not None:
            raise self.failure
        self.journal.ensure_reserve()

    def ensure_replicable(self) -> None:
        """Like `ensure_writable`, for what is new: group offsets, trims. Raises NotEnoughReplicas, too."""
        self.ensure_writable()
        self.journal.ensure_replicas()

    @property
    def is_applying(self) -> bool:
        """Whether an acknowledged decision is not durable here yet."""
        return self._applying > 0

    @property
    def waits_for_space(self) -> bool:
        """Whether accepted data must wait for disk space before it can be written or made visible."""
        return self.journal.waits_for_space or self.sink.waits_for_space

    @property
    def leader_epoch(self) -> int:
        """The epoch under which this broker leads. Hot paths ask the journal instead."""
        return self.journal.leader_epoch

    @property
    def epochs(self) -> Epochs:
        """All leader epochs so far, including the present one."""
        return self.state.epochs.note(self.journal.leader_epoch, self.state.next_offset)

    # -- batches ---------------------------------------------------------------------------------------------

    def append_plain(
        self,
        batch: Buffer,
        header: BatchHeader | None,
        records: int,
        done: Appended,
        *,
        may_begin: bool = False,
    ) -> None:
        """Append a batch of no transaction. Calls `done(base offset)` when durable. If it `may_begin` here,
        it need not be its producer's first. Raises RejectedBatch.
        """
        if header is not None and header.producer_id >= 0:
            seen = self._producer(header, may_begin).find_duplicate(header, batch)
            if seen is not None:
                self.journal.when_durable(lambda: done(seen.base_offset))
                return
        effect = self.journal.append(
            Kind.PLAIN, batch, fold=lambda entry: self.state.fold_plain(entry, header, batch), records=records
        )

        def durable() -> None:
            self.sink.push(effect, batch)
            done(effect.base_offset)

        self.journal.when_durable(durable)

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
        """Append a batch of an open transaction. Calls `done(expected base offset)` when it is kept, before
        it is durable: PREPARED makes that safe. With `transactional.ack=durable`, `done` waits until it is
        durable. If it `may_begin` here, it need not be its producer's first. Raises RejectedBatch,
        TooManyDrafts.
        """
        if header is not None:
            seen = self._producer(header, may_begin).find_duplicate(header, batch)
            if seen is not None:
                self._when_draft_is_safe(transaction, lambda: done(seen.base_offset))
                return
        known = self.state.branch(transaction)
        if known is not None and known.standing is not Standing.OPEN:
            raise NoOpenTransaction(
                f"transaction {transaction} is {known.standing.name} in {self.name}: it takes no more batches"
            )
        previous = known.head if known is not None else NOWHERE
        self.journal.draft_space.take(transaction, len(batch))

        def fold(entry: Entry) -> tuple[Entry, int]:
            return entry, self.state.fold_draft(entry, header, batch)

        entry, expected_offset = self.journal.append(
            Kind.DRAFT, batch, fold=fold, records=records, previous=previous, transaction=transaction
        )
        if self._has_batches:
            self.journal.keep_draft(entry, batch)
        self._when_draft_is_safe(transaction, lambda: done(expected_offset))

    def _when_draft_is_safe(self, transaction: TransactionId, done: Done) -> None:
        """Call `done` when the drafts of a transaction may be acked."""
        told = self._told.get(transaction.producer_id)
        if told is not None and told.is_durable:
            self.journal.when_durable(done)
        else:
            self.journal.when_kept(done)

    def ensure_no_transaction(self, producer_id: int) -> None:
        """Raise InTransaction if this producer has a transaction open here."""
        told = self._told.get(producer_id)
        if told is not None:
            raise InTransaction(
                f"producer {producer_id} has transaction {told.transaction} of {told.transactional_id!r} "
                f"open in {self.name}, and sent a batch without one: end the transaction first"
            )

    def _producer(self, header: BatchHeader, may_begin: bool) -> ProducerState:
        producer = self.state.producer(header.producer_id, header.producer_epoch)
        if may_begin and not producer.seen:
            return ProducerState(producer.epoch, is_forgotten=True)
        return producer

    def trim(self, start_offset: int, done: Done) -> None:
        """Move the log's start to `start_offset`. Calls `done()` when that is durable."""
        effect = self.journal.append(
            Kind.TRIM,
            TRIM_PAYLOAD.pack(start_offset),
            fold=lambda entry: self.state.fold_trim(entry, start_offset),
        )
        self._release(effect, done)

    # -- transactions ----------------------------------------------------------------------------------------

    def open_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        """Accept the coordinator's word: drafts of this producer belong to this transaction from now on. If
        it `is_durable`, their acks wait for an fsync.
        """
        self._told[transaction.producer_id] = Told(transaction, transactional_id, is_durable)

    def resume_transaction(
        self, transaction: TransactionId, transactional_id: str, *, is_durable: bool
    ) -> None:
        """An open transaction goes on after a crash. If the crash took the decision to commit it, but not
        the promise here, that is taken back.
        """
        if self.standing(transaction) is Standing.PREPARED:
            self.journal.append(Kind.REOPEN, fold=self.state.fold_reopen, transaction=transaction)
        self.open_transaction(transaction, transactional_id, is_durable=is_durable)

    def close_transaction(self, transaction: TransactionId) -> None:
        """Accept no more drafts of a transaction."""
        told = self._told.get(transaction.producer_id)
        if told is not None and told.transaction == transaction:
            del self._told[transaction.producer_id]

    def open_transaction_of(
        self, transactional_id: str | None, producer_id: int, producer_epoch: int
    ) -> TransactionId:
        """The id of the transaction that a draft of this producer belongs to. Raises NoOpenTransaction."""
        told = self._told.get(producer_id)
        if (
            told is None
            or told.transaction.producer_epoch != producer_epoch
            or told.transactional_id != transactional_id
        ):
            raise NoOpenTransaction(
                f"producer {producer_id} epoch {producer_epoch} of {transactional_id!r} has no open "
                f"transaction in {self.name}: it was ended, or {self.name} was not added to it"
            )
        return told.transaction

    def standing(self, transaction: TransactionId) -> Standing | None:
        """The state of a transaction here; None if it is not known."""
        known = self.state.branch(transaction)
        return known.standing if known is not None else None

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """Promise to apply a transaction. Calls `done()` when all its drafts and the promise are durable."""
        self.close_transaction(transaction)
        known = self.state.branch(transaction)
        payload = PREPARED_PAYLOAD.pack(known.drafts if known else 0, finished)
        self.journal.append(
            Kind.PREPARED,
            payload,
            fold=lambda entry: self.state.fold_prepared(entry, finished),
            transaction=transaction,
            previous=known.head if known else NOWHERE,
        )
        self.journal.when_durable(done)

    def promise_of(self, transaction: TransactionId) -> Promise:
        """The state of the promise to commit a transaction."""
        return PROMISES.get(self.standing(transaction), Promise.NOT_GIVEN)

    def rank_of(self, transaction: TransactionId) -> int:
        """The rank with which a transaction was applied here; NO_RANK if it was not, or is forgotten."""
        known = self.state.branch(transaction)
        return known.rank if known is not None else NO_RANK

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Done) -> None:
        """Make a prepared transaction visible. Calls `done()` when the decision is durable. Idempotent."""
        self.close_transaction(transaction)
        known = self.state.branch(transaction)
        if known is not None and known.standing is Standing.APPLIED:
            self.journal.when_durable(done)
            return
        effect = self.journal.append(
            Kind.APPLY,
            order.payload(transaction),
            fold=lambda entry: self.state.fold_apply(entry, order),
            transaction=transaction,
        )
        self._give_back(transaction, known)
        self._applying += 1

        def applied() -> None:
            self._applying -= 1
            done()

        self._release(effect, applied)

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        """Forget a transaction's drafts, and accept nothing more from its producer below `fence_epoch`."""
        self.close_transaction(transaction)
        known = self.state.branch(transaction)
        if known is not None and known.standing is Standing.DISCARDED:
            self.journal.when_durable(done)
            return
        payload = DISCARD_PAYLOAD.pack(fence_epoch, finished)
        self.journal.append(
            Kind.DISCARD,
            payload,
            fold=lambda entry: self.state.fold_discard(entry, fence_epoch, finished),
            transaction=transaction,
        )
        self._give_back(transaction, known)
        self.journal.when_durable(done)

    def forget_producers(self, producer_ids: Iterable[int]) -> None:
        """Forget producers whose transactional ids have expired: nobody will ask for their transactions."""
        known = [producer_id for producer_id in producer_ids if producer_id in self.state.producers]
        for start in range(0, len(known), FORGOTTEN_AT_ONCE):
            some = known[start : start + FORGOTTEN_AT_ONCE]
            payload = b"".join(FORGET_PAYLOAD.pack(producer_id) for producer_id in some)
            self.journal.append(
                Kind.FORGET_PRODUCERS, payload, fold=partial(self.state.fold_forget, producer_ids=some)
            )

    # -- the space of drafts ---------------------------------------------------------------------------------

    def count_drafts(self) -> None:
        """Count the drafts that recovery found. Call it once, before the partition serves."""
        self._counts_drafts = True
        for transaction, branch in self.state.undecided.items():
            self.journal.draft_space.count(transaction, branch.size)

    def _give_back(self, transaction: TransactionId, branch: Branch | None) -> None:
        """A transaction is decided: count what it had here no longer."""
        if branch is not None and self._counts_drafts:
            self.journal.draft_space.give_back(transaction, branch.size)

    def _give_back_all(self) -> None:
        """Nobody asks this instance any more."""
        for transaction, branch in self.state.undecided.items():
            self._give_back(transaction, branch)
        self._counts_drafts = False

    def _release(self, effect: Effect | None, done: Done) -> None:
        """When the entry just appended is durable, carry out its effect, then call `done`."""

        def durable() -> None:
            if effect is not None:
                self.sink.push(effect, None)
            done()

        self.journal.when_durable(durable)

    # -- checkpoints -----------------------------------------------------------------------------------------

    @property
    def checkpoint_position(self) -> int:
        """Where the last checkpoint ends in the journal."""
        return self._checkpointing.position

    @property
    def bytes_since_checkpoint(self) -> int:
        """How much of the journal the next start would have to fold."""
        return self.state.position - self.checkpoint_position

    async def checkpoint(self) -> None:
        """Store the state as of now (I6), and free journal space (I7). Raises JournalFull."""
        if self.failure is not None or not self.bytes_since_checkpoint:
            return
        try:
            await self._checkpointing.make(self.state)
        except FaircopyError as error:
            if error is not self.failure:
                raise


def participant(partition: Partition | None) -> Participant:
    """The participant that a coordinator talks to. `partition` is None if its topic is deleted."""
    if partition is None:
        return DELETED
    failure = partition.failure
    if isinstance(failure, NotLed):
        return LEADERLESS
    return partition if failure is None else Failed(partition, str(partition.name), failure)
