"""One partition: its journal, the fold's state at the journal's tail, and the sink of its effects.

Requests go in by `append_*`, `open_transaction`, `prepare`, `apply` and `discard`. Each appends an entry, folds it, and
hands its effect to the sink when the entry is durable (I2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from faircopy.copier.checkpoint import (
    NO_CHECKPOINT,
    Checkpoint,
    changes_of,
    decode_checkpoint,
    encode_checkpoint,
    give_back,
    restore,
    take_changed,
)
from faircopy.copier.fold import (
    APPLY_PAYLOAD,
    DISCARD_PAYLOAD,
    NO_RANK,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    Effect,
    PartitionState,
    Standing,
)
from faircopy.copier.producers import ProducerState, RejectedBatch
from faircopy.copier.sink import Sink
from faircopy.datalog.epochs import Epochs
from faircopy.errors import FaircopyError
from faircopy.journal.entry import NOWHERE, Kind, TransactionId
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.partition.name import PartitionName
from faircopy.partition.participant import DELETED, LEADERLESS, Done, Failed, NotLed, Participant, Promise
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import Shortage
from faircopy.storage.state_store import Change, StateStore
from faircopy.storage.system import Buffer
from faircopy.wire.batch import BatchHeader

LET_GO_POLL_SECONDS = 0.002
STARVED_POLL_SECONDS = 1.0

PROMISES: dict[Standing | None, Promise] = {Standing.PREPARED: Promise.HELD, Standing.APPLIED: Promise.KEPT}

Appended = Callable[[int], None]  # is given the base offset; that of a draft is the least that it may get


class NoOpenTransaction(RejectedBatch):
    """A transactional batch came for a transaction that is not open here: a late one, or a zombie's."""


class Told(NamedTuple):
    """The transaction that a producer has open here, as its coordinator has said."""

    transaction: TransactionId
    transactional_id: str


class Partition:
    """A partition that this broker leads. `State` is its fold."""

    State: ClassVar[type[PartitionState]] = PartitionState

    def __init__(
        self, name: PartitionName, partition_id: TopicIdPartition, journal: Journal, sink: Sink, store: StateStore,
        disk: DiskPool, *, has_batches: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self.id = partition_id
        self.identity = partition_id.identity
        self.journal = journal
        self.sink = sink
        self.state = self.State()
        self.failure: FaircopyError | None = None
        self.checkpoint_position = 0
        self._store = store
        self._disk = disk
        self._has_batches = has_batches
        self._told: dict[int, Told] = {}
        self._checkpointing = False
        self._applying = 0
        self._snapshot: asyncio.Future[tuple[list[Change], Checkpoint]] | None = None

    # -- opening -------------------------------------------------------------------------------------------------

    def load(self) -> Checkpoint:
        """Take the state as the last checkpoint stored it, and return that. Blocks. See `opening`."""
        value = self._store.get("checkpoints", self.identity)
        if value is None:
            return NO_CHECKPOINT
        checkpoint = decode_checkpoint(value)
        self.state = restore(
            checkpoint,
            self._store.scan("producers", self.identity),
            self._store.scan("transactions", self.identity),
        )
        self.checkpoint_position = checkpoint.position
        return checkpoint

    def recover_entry(self, recovered: Recovered) -> None:
        """Fold an entry that was found after the checkpoint, and carry out its effect at once. Blocks."""
        effect = self.state.fold(recovered.entry, recovered.payload, has_batches=self._has_batches)
        if effect is not None:
            self.sink.recover(effect, recovered)

    # -- stopping ------------------------------------------------------------------------------------------------

    def fail(self, error: FaircopyError) -> None:
        """Stop this partition: it serves nothing more until the cause is repaired and the broker restarted (I9)."""
        self.failure = error
        if self._snapshot is not None and not self._snapshot.done():
            # The sink does nothing more: a checkpoint would wait for it for ever.
            self._snapshot.set_exception(error)

    def stop_serving(self) -> None:
        """Lead no more: nothing is taken from now on. One that is stopped already stays so."""
        if self.failure is None:
            self.failure = NotLed(f"{self.name} has no leader now: ask for it, and try again")

    async def retire(self) -> None:
        """After `stop_serving`: all that was taken is visible and checkpointed when this returns. On a full disk that
        waits for space. Raises StorageFailure.
        """
        if not isinstance(self.failure, NotLed):
            return
        while self._checkpointing:
            await asyncio.sleep(LET_GO_POLL_SECONDS)
        self._checkpointing = True
        try:
            while not await self._is_checkpointed():
                await asyncio.sleep(STARVED_POLL_SECONDS)
        finally:
            self._checkpointing = False
        await self.let_go()

    async def _is_checkpointed(self) -> bool:
        """Checkpoint; false if there is no space for that. One that is found to be damaged meanwhile needs none."""
        try:
            await self._checkpoint()
        except (JournalFull, Shortage):
            return False
        except FaircopyError as error:
            if error is not self.failure:
                raise
        return True

    def abandon(self, error: FaircopyError) -> None:
        """Stop this partition because it is deleted. Its files may go as soon as it is `let_go`."""
        self.fail(error)
        self.journal.abandon()

    async def let_go(self) -> None:
        """Wait until nothing is at work on the files of a partition that is abandoned."""
        while self.is_at_work:
            await asyncio.sleep(LET_GO_POLL_SECONDS)

    @property
    def is_at_work(self) -> bool:
        """Whether a thread, or a checkpoint, uses this partition's files."""
        return self._checkpointing or self.journal.is_at_work

    def ensure_sound(self) -> None:
        """Raise what stopped this partition, or JournalFull, if it can't take anything new now."""
        if self.failure is not None:
            raise self.failure
        self.journal.ensure_space()

    def ensure_writable(self) -> None:
        """As `ensure_sound`, for what a full disk must still take: what frees space, offsets of groups, decisions."""
        if self.failure is not None:
            raise self.failure
        self.journal.ensure_reserve()

    @property
    def is_applying(self) -> bool:
        """Whether a decision, which was acknowledged, is not durable here yet."""
        return self._applying > 0

    @property
    def waits_for_space(self) -> bool:
        """Whether what was taken can't be written, or not be made visible, before the disk has space."""
        return self.journal.waits_for_space or self.sink.waits_for_space

    @property
    def leader_epoch(self) -> int:
        """The epoch under which this broker leads. On hot paths, ask the journal."""
        return self.journal.leader_epoch

    @property
    def epochs(self) -> Epochs:
        """All leader epochs there have been, this broker's included."""
        return self.state.epochs.note(self.journal.leader_epoch, self.state.next_offset)

    # -- batches -------------------------------------------------------------------------------------------------

    def append_plain(self, batch: Buffer, header: BatchHeader | None, records: int, done: Appended) -> None:
        """Append a batch without a transaction; `done(base offset)` when it is durable. Raises RejectedBatch."""
        if header is not None and header.producer_id >= 0:
            seen = self._producer(header).find_duplicate(header)
            if seen is not None:
                self.journal.when_durable(lambda: done(seen.base_offset))
                return
        entry = self.journal.append(Kind.PLAIN, batch, records=records)
        effect = self.state.fold_plain(entry, header)

        def durable() -> None:
            self.sink.push(effect, batch)
            done(effect.base_offset)

        self.journal.when_durable(durable)

    def append_draft(
        self, batch: Buffer, header: BatchHeader | None, records: int, transaction: TransactionId, done: Appended
    ) -> None:
        """Append a batch of an open transaction; `done(expected base offset)` when it stands in the file: PREPARED
        makes that safe. Raises RejectedBatch.
        """
        if header is not None:
            seen = self._producer(header).find_duplicate(header)
            if seen is not None:
                self.journal.when_written(lambda: done(seen.base_offset))
                return
        known = self.state.transactions.get(transaction)
        previous = known.head if known is not None else NOWHERE
        entry = self.journal.append(Kind.DRAFT, batch, records=records, previous=previous, transaction=transaction)
        expected_offset = self.state.fold_draft(entry, header)
        if self._has_batches:
            self.journal.keep_draft(entry, batch)
        self.journal.when_written(lambda: done(expected_offset))

    def _producer(self, header: BatchHeader) -> ProducerState:
        return self.state.producer(header.producer_id, header.producer_epoch)

    def trim(self, start_offset: int, done: Done) -> None:
        """Move the log's start to `start_offset`; `done()` when that is durable."""
        entry = self.journal.append(Kind.TRIM, TRIM_PAYLOAD.pack(start_offset))
        self._release(self.state.fold_trim(entry, start_offset), done)

    # -- transactions --------------------------------------------------------------------------------------------

    def open_transaction(self, transaction: TransactionId, transactional_id: str) -> None:
        """The coordinator tells a TxId: drafts of this producer belong to it from now on."""
        self._told[transaction.producer_id] = Told(transaction, transactional_id)

    def open_transaction_of(self, transactional_id: str | None, producer_id: int, producer_epoch: int) -> TransactionId:
        """The TxId that a draft of this producer belongs to. Raises NoOpenTransaction, StaleEpoch by the caller's
        check.
        """
        told = self._told.get(producer_id)
        if (
            told is None
            or told.transaction.producer_epoch != producer_epoch
            or told.transactional_id != transactional_id
        ):
            raise NoOpenTransaction(
                f"producer {producer_id} epoch {producer_epoch} of {transactional_id!r} has no open transaction in "
                f"{self.name}: it was ended, or {self.name} was not added to it"
            )
        return told.transaction

    def standing(self, transaction: TransactionId) -> Standing | None:
        """Where a transaction stands here; None if it is not known."""
        known = self.state.transactions.get(transaction)
        return known.standing if known is not None else None

    def prepare(self, transaction: TransactionId, finished: int, done: Done) -> None:
        """Promise a transaction: `done()` when all its drafts and the promise are durable."""
        self._close(transaction)
        known = self.state.transactions.get(transaction)
        payload = PREPARED_PAYLOAD.pack(known.drafts if known else 0, finished)
        entry = self.journal.append(
            Kind.PREPARED, payload, transaction=transaction, previous=known.head if known else NOWHERE
        )
        self.state.fold_prepared(entry, finished)
        self.journal.when_durable(done)

    def promise_of(self, transaction: TransactionId) -> Promise:
        """What became of the promise to commit a transaction."""
        return PROMISES.get(self.standing(transaction), Promise.LOST)

    def rank_of(self, transaction: TransactionId) -> int:
        """Which rank a transaction had when it was applied here; NO_RANK if it was not, or is forgotten."""
        known = self.state.transactions.get(transaction)
        return known.rank if known is not None else NO_RANK

    def apply(self, transaction: TransactionId, finished: int, rank: int, done: Done) -> None:
        """Make a prepared transaction visible; `done()` when the decision is durable. Doing it again does nothing.

        `rank` is its place in the order in which the coordinator has transactions applied.
        """
        self._close(transaction)
        known = self.state.transactions.get(transaction)
        if known is not None and known.standing is Standing.APPLIED:
            self.journal.when_durable(done)
            return
        entry = self.journal.append(Kind.APPLY, APPLY_PAYLOAD.pack(finished, rank), transaction=transaction)
        self._applying += 1

        def applied() -> None:
            self._applying -= 1
            done()

        self._release(self.state.fold_apply(entry, finished, rank), applied)

    def discard(self, transaction: TransactionId, fence_epoch: int, finished: int, done: Done) -> None:
        """Forget a transaction's drafts, and take nothing from its producer below `fence_epoch` any more."""
        self._close(transaction)
        known = self.state.transactions.get(transaction)
        if known is not None and known.standing is Standing.DISCARDED:
            self.journal.when_durable(done)
            return
        payload = DISCARD_PAYLOAD.pack(fence_epoch, finished)
        entry = self.journal.append(Kind.DISCARD, payload, transaction=transaction)
        self.state.fold_discard(entry, fence_epoch, finished)
        self.journal.when_durable(done)

    def _close(self, transaction: TransactionId) -> None:
        told = self._told.get(transaction.producer_id)
        if told is not None and told.transaction == transaction:
            del self._told[transaction.producer_id]

    def _release(self, effect: Effect | None, done: Done) -> None:
        """When the entry just appended is durable: carry out its effect, and tell."""

        def durable() -> None:
            if effect is not None:
                self.sink.push(effect, None)
            done()

        self.journal.when_durable(durable)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    @property
    def bytes_since_checkpoint(self) -> int:
        return self.state.position - self.checkpoint_position

    async def checkpoint(self) -> None:
        """Store the state as of now (I6), and give back journal space (I7). Raises JournalFull."""
        if self._checkpointing or self.failure is not None or not self.bytes_since_checkpoint:
            return
        self._checkpointing = True
        try:
            await self._checkpoint()
        except FaircopyError as error:
            if error is not self.failure:
                raise
        finally:
            self._checkpointing = False

    async def _checkpoint(self) -> None:
        state = self.state
        position = state.position
        folded = Checkpoint(
            position, state.start_offset, state.next_offset, None, 0, 0, state.forgotten_producer_id, state.epochs
        )
        needed = min(position, state.first_needed_position)
        changed = take_changed(state)
        changes = changes_of(self.identity, state, changed)
        try:
            more, end = await self._snapshot_sink()
            await self.journal.sync()
            await self.sink.sync()
            checkpoint = folded._replace(
                log_segment_base=end.log_segment_base, log_byte=end.log_byte, greatest_time_ms=end.greatest_time_ms
            )
            await self._store.write([*changes, *more, encode_checkpoint(self.identity, checkpoint)])
        except BaseException:
            # What is not stored must go with the next checkpoint, or that one would tear the state.
            give_back(state, changed)
            raise
        self.sink.stored()
        self.checkpoint_position = position
        for segment in self.journal.reclaim(needed):
            await self._disk.run(segment.discard)

    async def _snapshot_sink(self) -> tuple[list[Change], Checkpoint]:
        """What the sink has to store when all effects up to now, and none behind, are carried out."""
        reached: asyncio.Future[tuple[list[Change], Checkpoint]] = asyncio.get_running_loop().create_future()
        self._snapshot = reached

        def snapshot() -> None:
            if not reached.done():
                reached.set_result(self.sink.snapshot())

        self.journal.when_durable(lambda: self.sink.push_barrier(snapshot))
        while not (await asyncio.wait([reached], timeout=STARVED_POLL_SECONDS))[0]:
            if self.waits_for_space:
                reached.cancel()
                raise JournalFull(f"{self.name} waits for space on the disk: it is checkpointed when there is some")
        return reached.result()


def participant(partition: Partition | None) -> Participant:
    """What a coordinator is to talk to; None is where the topic is deleted."""
    if partition is None:
        return DELETED
    failure = partition.failure
    if isinstance(failure, NotLed):
        return LEADERLESS
    return partition if failure is None else Failed(partition, str(partition.name), failure)
