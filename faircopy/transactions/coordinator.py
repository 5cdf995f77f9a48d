"""The coordinator of transactions: carries out what the tables decide (DESIGN, section 4).

Commit: PREPARE_COMMIT and every participant's PREPARED are appended in one tick and made durable side by side; then the
ack; then APPLY to every participant, in the journal's order within a group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from faircopy.copier.fold import NO_FENCE, NO_RANK, Standing
from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.errors import FaircopyError
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import JournalFull
from faircopy.loop.waiting import tell
from faircopy.partition.partition import Appended, Partition
from faircopy.storage.clock import Clock
from faircopy.transactions.connections import Kind as RequestKind
from faircopy.transactions.connections import LateRequest, ProducerConnections, Sent
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.order import by_rank
from faircopy.transactions.table import (
    ABORT_PHASES,
    MAX_EPOCH,
    NOBODY,
    NewEntry,
    Phase,
    Producer,
    Transaction,
    TransactionRefused,
    group_of,
    next_epoch,
    prepare_abort,
)
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.murmur2 import partition_for

INIT_WAIT_SECONDS = 30.0
TRY_AGAIN = {
    RequestKind.PRODUCE: ErrorCode.NOT_ENOUGH_REPLICAS,
    RequestKind.TRANSACTION: ErrorCode.CONCURRENT_TRANSACTIONS,
    RequestKind.OFFSETS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What a live client takes for "nothing was done, send it again soon"."""

log = logging.getLogger(__name__)


class CoordinatorOptions(NamedTuple):
    """Limits, in milliseconds."""

    max_timeout_ms: int
    transactional_id_expiration_ms: int


class TransactionCoordinator:
    """All transactions whose metadata journals this broker leads."""

    def __init__(
        self,
        journals: list[MetadataJournal],
        find_partition: Callable[[TopicIdPartition], Partition | None],
        next_producer_id: Callable[[], Awaitable[int]],
        incarnation: int,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        options: CoordinatorOptions,
    ) -> None:
        self.journals = journals
        self._find_partition = find_partition
        self._next_producer_id = next_producer_id
        self._incarnation = incarnation
        self._clock = clock
        self._loop = loop
        self._options = options
        # The high half is this coordinator's incarnation, so a number that a crash forgot is never used again (I4).
        self._next_number = incarnation << 32
        self._next_rank = incarnation << 32
        self._ranks_of_before: dict[TransactionId, int] = {}  # of those that a crash left applied in part
        self._acks: dict[TransactionId, asyncio.Future[None]] = {}
        self._settled: dict[str, list[asyncio.Future[None]]] = {}
        self._connections = ProducerConnections()
        self._may_have_begun: set[str] = set()
        self._unwritten: dict[TransactionId, tuple[MetadataJournal, int]] = {}
        self._undecided: set[TransactionId] = set()

    def journal_of(self, transactional_id: str) -> MetadataJournal:
        """J-fn(G)."""
        return self.journals[partition_for(group_of(transactional_id).encode(), len(self.journals))]

    def refusal_of_draft(self, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        """What to tell an instance whose draft belongs to no open transaction."""
        producer = self.journal_of(transactional_id).table.producers.get(transactional_id)
        if producer is not None and producer.producer_id == producer_id:
            if producer.epoch > epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if producer.must_abort:
                return ErrorCode.TRANSACTION_ABORTABLE
        return ErrorCode.INVALID_TXN_STATE

    # -- InitProducerId ------------------------------------------------------------------------------------------

    async def init_producer(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int
    ) -> tuple[int, int]:
        """A (producer id, epoch) that fences all earlier instances; what they left is ended when this returns.

        `producer_id` and `epoch` are those of the caller if it had some (KIP-360), else -1. Raises TransactionRefused.
        """
        if not 0 < timeout_ms <= self._options.max_timeout_ms:
            raise TransactionRefused(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction timeout {timeout_ms} ms of {transactional_id!r} is not within 1 to "
                f"{self._options.max_timeout_ms} ms (setting transaction.max.timeout.ms)",
            )
        fresh_id = -1
        existing = self.journal_of(transactional_id).table.producers.get(transactional_id)
        if existing is None or next_epoch(existing) is None:
            fresh_id = await self._next_producer_id()
        home = self.journal_of(transactional_id)
        identity = self._fence(home, transactional_id, timeout_ms, (producer_id, epoch), fresh_id)
        await home.journal.durable()
        await self._wait_until_settled(home, transactional_id)
        return identity

    def _fence(
        self,
        home: MetadataJournal,
        transactional_id: str,
        timeout_ms: int,
        caller: tuple[int, int],
        fresh_id: int,
    ) -> tuple[int, int]:
        """Raise the epoch, and abort what is open."""
        producer = home.table.producers.get(transactional_id)
        if producer is None:
            identity = (fresh_id, 0)
        else:
            self._ensure_newest(producer, caller)
            epoch = next_epoch(producer)
            identity = (producer.producer_id, epoch) if epoch is not None else (fresh_id, 0)
        # The answer may be lost, and then the same instance asks again.
        pardoned = caller[1] if caller[0] == identity[0] else NOBODY
        self._append_fence(home, transactional_id, identity, timeout_ms, pardoned)
        return identity

    def _append_fence(
        self, home: MetadataJournal, transactional_id: str, identity: tuple[int, int], timeout_ms: int, pardoned: int
    ) -> None:
        """Fence the instance that there is, and abort what it has open: one entry, as a crash may come between two."""
        producer = home.table.producers.get(transactional_id)
        fenced = producer.current if producer is not None else None
        if producer is not None:
            self._forget_instance(home, producer)
        now_ms = self._clock.steady_ms()
        home.append(home.table.decide_fence(transactional_id, *identity, timeout_ms, now_ms, pardoned))
        if fenced is not None:
            self._discard(home, fenced)

    def _ensure_newest(self, producer: Producer, caller: tuple[int, int]) -> None:
        """KIP-360: a caller that names its old identity must be the newest instance, or one that is pardoned."""
        if caller[0] < 0 or caller == producer.identity:
            return
        if producer.pardoned_epoch == NOBODY or caller != (producer.producer_id, producer.pardoned_epoch):
            raise TransactionRefused(
                ErrorCode.PRODUCER_FENCED,
                f"producer {caller[0]} epoch {caller[1]} of {producer.transactional_id!r} is fenced by a newer "
                f"instance",
            )

    async def _wait_until_settled(self, home: MetadataJournal, transactional_id: str) -> None:
        producer = home.table.producers.get(transactional_id)
        if producer is None or not producer.ending:
            return
        settled: asyncio.Future[None] = self._loop.create_future()
        self._settled.setdefault(transactional_id, []).append(settled)
        try:
            await asyncio.wait_for(settled, INIT_WAIT_SECONDS)
        except TimeoutError:
            raise TransactionRefused(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the last transaction of {transactional_id!r} is still being copied",
            ) from None

    # -- requests of an open transaction -------------------------------------------------------------------------

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        """Add partitions to the producer's transaction, and tell their leaders its TxId. Raises TransactionRefused.

        Returns when that is written. Nothing waits for a disk, as PREPARE_COMMIT lists the participants itself; but
        what a crash of the process forgets must not be acked: the producer's next request would begin another
        transaction, and its commit would be half of what it means to.
        """
        home = self.journal_of(transactional_id)
        producer = home.table.producer_of(transactional_id, producer_id, epoch, fenced)
        self._admit(producer.identity, RequestKind.TRANSACTION, sent)
        self._ensure_space(home, producer)
        named = {partition.id: partition for partition in partitions}
        if not named:
            return
        if producer.current is None:
            self._next_number += 1
        pairs = [(participant, self._incarnation) for participant in named]
        for entry in home.table.decide_add(producer, pairs, self._next_number, self._clock.steady_ms()):
            home.append(entry)
        assert producer.current is not None
        self._may_have_begun.discard(transactional_id)
        self._note_unwritten(home, producer.current.id)
        for partition in named.values():
            partition.open_transaction(producer.current.id, transactional_id)
        await home.journal.written()

    def _ensure_space(self, home: MetadataJournal, producer: Producer) -> None:
        """Begin nothing on a full disk. Raises TransactionRefused."""
        try:
            home.journal.ensure_space()
        except JournalFull as error:
            if producer.current is None:
                self._may_have_begun.add(producer.transactional_id)
            raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def _note_unwritten(self, home: MetadataJournal, transaction: TransactionId) -> None:
        self._unwritten[transaction] = (home, home.journal.next_position)

        def written() -> None:
            _, position = self._unwritten.get(transaction, (home, -1))
            if position <= home.journal.written_position:
                self._unwritten.pop(transaction, None)

        home.journal.when_written(written)

    def once_known(self, transaction: TransactionId, done: Appended) -> Appended:
        """What to call when a draft is safe, so that `done` is called when its transaction is as well.

        An acked draft must never be of a transaction that a crash of the process forgets: else its producer, who is
        told nothing, could begin another with what remains to be sent, and commit half of what it means to.
        """
        unwritten = self._unwritten.get(transaction)
        if unwritten is None:
            return done
        waiting = 2
        offset = UNKNOWN_OFFSET

        def one_is_safe() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                done(offset)

        def draft_is_safe(base_offset: int) -> None:
            nonlocal offset
            offset = base_offset
            one_is_safe()

        unwritten[0].journal.when_written(one_is_safe)
        return draft_is_safe

    def admit_draft(self, transaction: TransactionId, sent: Sent) -> None:
        """Let a Produce into a transaction that is open. Raises TransactionRefused if it comes late."""
        self._admit(transaction[:2], RequestKind.PRODUCE, sent)

    def admit_offsets(self, transactional_id: str, producer_id: int, epoch: int, sent: Sent) -> None:
        """Let a TxnOffsetCommit in. Raises TransactionRefused if it is not of the newest instance, or comes late."""
        table = self.journal_of(transactional_id).table
        producer = table.producer_of(transactional_id, producer_id, epoch, ErrorCode.INVALID_PRODUCER_EPOCH)
        self._admit(producer.identity, RequestKind.OFFSETS, sent)

    def _admit(self, identity: tuple[int, int], kind: RequestKind, sent: Sent) -> None:
        """Raise TransactionRefused for a request that comes late (KAFKA-17754). Call when all else is known to fit: an
        identity that somebody else names must leave no trace.
        """
        try:
            self._connections.admit(identity, kind, sent)
        except LateRequest as error:
            raise TransactionRefused(TRY_AGAIN[kind], f"producer {identity[0]}: {error}") from error

    def _forget_instance(self, home: MetadataJournal, producer: Producer) -> None:
        """The instance is fenced, or the id forgotten."""
        self._connections.forget(producer.identity)
        self._may_have_begun.discard(producer.transactional_id)

    async def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        """Commit or abort the open transaction; a commit returns when it can't be lost (I5). Raises
        TransactionRefused.
        """
        home = self.journal_of(transactional_id)
        producer = home.table.producer_of(transactional_id, producer_id, epoch, fenced)
        self._admit(producer.identity, RequestKind.TRANSACTION, sent)
        transaction = producer.current
        if commit and transaction is not None:
            self._ensure_participants(home, transaction)
        if not commit and transaction is None:
            self._ensure_none_forgotten(producer)
        decided = home.table.decide_end(producer, self._clock.steady_ms(), commit=commit)
        if producer.must_abort:
            home.append(decided[0])
        elif transaction is None:
            await self._repeated_ack(producer)
        elif commit:
            await self._commit(home, producer, transaction, decided[0])
        else:
            self._abort(home, transaction, producer.epoch)

    def _ensure_none_forgotten(self, producer: Producer) -> None:
        """An abort that finds nothing open may be that of a transaction whose begin was refused, or lost in a crash
        before it was acknowledged. To one whose last transaction is committed, "aborted" could be a lie, and
        INVALID_TXN_STATE is fatal: this code has clients renew their epoch, which aborts whatever there is (KIP-360).
        """
        is_abort_of_the_last = producer.must_abort or producer.last_phase in ABORT_PHASES
        if producer.transactional_id in self._may_have_begun and not is_abort_of_the_last:
            raise TransactionRefused(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"no transaction of {producer.transactional_id!r} is known to have begun since its last one, which is "
                f"{producer.phase_name}: call InitProducerId, which aborts whatever there is",
            )

    async def _repeated_ack(self, producer: Producer) -> None:
        """A repeated request is answered when the first one is. Raises TransactionRefused."""
        if not self._undecided.isdisjoint(producer.ending):
            raise TransactionRefused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"whether the last transaction of {producer.transactional_id!r} is committed can't be known before a "
                f"partition that takes part in it is repaired",
            )
        for transaction in list(producer.ending):
            if transaction in self._acks:
                await self._acks[transaction]

    def _ensure_participants(self, home: MetadataJournal, transaction: Transaction) -> None:
        """A participant that can't promise makes the whole transaction abort; a deleted topic takes no part."""
        for partition in self._partitions(transaction):
            try:
                partition.ensure_writable()
            except JournalFull as error:
                # Nothing is lost: the client asks again until there is space, or the timeout comes.
                raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
            except FaircopyError as error:
                self._abort(home, transaction, transaction.id.producer_epoch, untold=True)
                raise TransactionRefused(
                    ErrorCode.TRANSACTION_ABORTABLE,
                    f"transaction {transaction.id} of {transaction.transactional_id!r} is aborted: {partition.name}: "
                    f"{error}",
                ) from error

    # -- commit --------------------------------------------------------------------------------------------------

    async def _commit(
        self, home: MetadataJournal, producer: Producer, transaction: Transaction, decided: NewEntry
    ) -> None:
        promising = self._promising(transaction)
        ack = self._acks[transaction.id] = self._loop.create_future()
        waiting = len(promising) + 1

        def one_is_durable() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._decision_is_durable(home, transaction, ack)

        group, finished = producer.group, home.finished_numbers.of(producer.producer_id)
        home.append(decided)
        home.order.decided(group, transaction.id)
        for partition in promising:
            partition.prepare(transaction.id, finished, one_is_durable)
        home.journal.when_durable(one_is_durable)
        await ack

    def _promising(self, transaction: Transaction) -> list[Partition]:
        """Who has to promise before the ack: every participant (I5)."""
        return self._partitions(transaction)

    def _decision_is_durable(self, home: MetadataJournal, transaction: Transaction, ack: asyncio.Future[None]) -> None:
        self._acks.pop(transaction.id, None)
        tell(ack)
        for released in home.order.durable(group_of(transaction.transactional_id), transaction.id):
            # The ack is written in the loop's next tick: nothing that follows is to stand in its way.
            self._loop.call_soon(self._loop.call_soon, self._apply, home, home.table.transactions[released])

    def _apply(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Send APPLY to every participant, in one tick, so that every tick is a consistent cut."""
        finished = home.finished_numbers.of(transaction.id.producer_id)
        participants = self._partitions(transaction)
        rank = self._ranks_of_before.pop(transaction.id, NO_RANK)
        if rank == NO_RANK:
            rank, self._next_rank = self._next_rank, self._next_rank + 1
        done = self._countdown(home, transaction, Kind.COMMITTED, len(participants))
        for partition in participants:
            # One that has failed is not counted down: it is sent APPLY again when it was repaired and restarted.
            if partition.failure is None:
                partition.apply(transaction.id, finished, rank, done)

    def _countdown(
        self, home: MetadataJournal, transaction: Transaction, kind: Kind, waiting: int
    ) -> Callable[[], None]:
        """A callback to be called `waiting` times; the last call ends the transaction."""
        if not waiting:
            self._finish(home, transaction, kind)

        def one_is_done() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._finish(home, transaction, kind)

        return one_is_done

    def _finish(self, home: MetadataJournal, transaction: Transaction, kind: Kind) -> None:
        """Every participant has the decision for good: nobody will ask again."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "transaction %s of %r is over: %s, %d partition(s)",
                transaction.id, transaction.transactional_id, kind.name, len(transaction.incarnations),
            )  # fmt: skip
        home.append(NewEntry(kind, transaction.id, {}))
        producer = home.table.producers[transaction.transactional_id]
        home.journal.when_durable_lazily(home.finished_numbers.once_durable(producer))
        if not producer.ending:
            for settled in self._settled.pop(transaction.transactional_id, ()):
                tell(settled)

    # -- abort ---------------------------------------------------------------------------------------------------

    def _abort(
        self, home: MetadataJournal, transaction: Transaction, fence_epoch: int, *, untold: bool = False
    ) -> None:
        """Decide for abort and tell the participants. Nothing waits: what a crash forgets of this is aborted as
        well.
        """
        home.append(prepare_abort(transaction, fence_epoch, untold=untold))
        self._discard(home, transaction)

    def _discard(self, home: MetadataJournal, transaction: Transaction) -> None:
        finished = home.finished_numbers.of(transaction.id.producer_id)
        participants = [partition for partition in self._partitions(transaction) if partition.failure is None]
        done = self._countdown(home, transaction, Kind.ABORTED, len(participants))
        for partition in participants:
            partition.discard(transaction.id, transaction.fence_epoch, finished, done)

    def abort_expired(self) -> list[Transaction]:
        """Abort the transactions past their timeout and fence their producers, who must not go on in ignorance."""
        expired = []
        for home in self.journals:
            for transaction in home.table.expired(self._clock.steady_ms()):
                producer = home.table.producers[transaction.transactional_id]
                identity = (producer.producer_id, min(producer.epoch + 1, MAX_EPOCH + 1))
                # Its producer may come back, if no other instance has come since (KIP-588).
                self._append_fence(
                    home, producer.transactional_id, identity, producer.timeout_ms, pardoned=producer.epoch
                )
                expired.append(transaction)
        return expired

    def forget_idle(self) -> None:
        """Forget transactional ids that nobody has used for long (transactional.id.expiration.ms)."""
        for home in self.journals:
            now_ms = self._clock.steady_ms()
            for transactional_id in home.table.forgettable(now_ms, self._options.transactional_id_expiration_ms):
                producer = home.table.producers[transactional_id]
                txid = TransactionId(producer.producer_id, producer.epoch, -1)
                home.append(NewEntry(Kind.FORGET, txid, {"id": transactional_id}))
                home.finished_numbers.forget(producer.producer_id)
                self._forget_instance(home, producer)

    def _partitions(self, transaction: Transaction) -> list[Partition]:
        """The participants; a deleted one takes no part any more."""
        found = (self._find_partition(participant) for participant in transaction.participants)
        return [partition for partition in found if partition is not None]

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self, partitions: Iterable[Partition], *, is_clean: bool, lost_power: bool) -> None:
        """After all journals are folded: finish what was decided, abort what lost its drafts, go on with the rest.

        `is_clean` says that the last run ended in order, with every draft durable: then open transactions go on.
        `lost_power` says that what was written, but not fsynced, may be lost.
        """
        promised: list[tuple[MetadataJournal, Transaction]] = []
        for home in self.journals:
            for transaction in sorted(home.table.transactions.values(), key=lambda each: each.prepared_position):
                if self._is_to_be_applied(home, transaction, is_clean):
                    promised.append((home, transaction))
            if lost_power and home.table.producers:
                # The begin of any transaction may be lost, with its drafts: nobody may go on as if nothing were.
                home.append(NewEntry(Kind.DOUBT, NO_TRANSACTION, {}))
            if not is_clean:
                self._may_have_begun.update(home.table.producers)
        self._apply_by_rank(promised)
        known = {
            (txid, participant)
            for home in self.journals
            for txid, transaction in home.table.transactions.items()
            for participant in transaction.participants
        }
        for partition in partitions:
            self._discard_unknown(partition, known)

    def _is_to_be_applied(self, home: MetadataJournal, transaction: Transaction, is_clean: bool) -> bool:
        """Whether a transaction is decided for good; any other is aborted, or goes on."""
        match transaction.phase:
            case Phase.PREPARE_COMMIT:
                return self._recover_prepared(home, transaction)
            case Phase.PREPARE_ABORT:
                self._discard(home, transaction)
            case Phase.ONGOING if is_clean:
                for partition in self._partitions(transaction):
                    partition.open_transaction(transaction.id, transaction.transactional_id)
            case _:
                self._abort(home, transaction, NO_FENCE, untold=True)
        return False

    def _recover_prepared(self, home: MetadataJournal, transaction: Transaction) -> bool:
        """Whether to commit. If not it is aborted, or waits until a participant that has failed is repaired, and its
        group's later ones with it (P5).
        """
        is_promised = self._is_promised(transaction)
        if is_promised is False:
            self._abort(home, transaction, NO_FENCE, untold=True)
            return False
        home.order.decided(group_of(transaction.transactional_id), transaction.id)
        if is_promised is None:
            self._undecided.add(transaction.id)
        return bool(is_promised)

    def _apply_by_rank(self, promised: list[tuple[MetadataJournal, Transaction]]) -> None:
        """Go on where a crash came between the participants, in the order of before."""
        rows = []
        for home, transaction in promised:
            ranks = [partition.rank_of(transaction.id) for partition in self._partitions(transaction)]
            rank = max(ranks, default=NO_RANK)
            if rank != NO_RANK:
                self._ranks_of_before[transaction.id] = rank
            rows.append((group_of(transaction.transactional_id), rank, (home, transaction)))
        for home, transaction in by_rank(rows):
            for released in home.order.durable(group_of(transaction.transactional_id), transaction.id):
                self._apply(home, home.table.transactions[released])

    def _is_promised(self, transaction: Transaction) -> bool | None:
        """Whether every participant has its PREPARED; a lost one means that no ack was given. None if one that has
        failed may have it, and can't say.

        One that has applied it knows that all had: others may have been deleted since, and made again.
        """
        partitions = self._partitions(transaction)
        standings = [partition.standing(transaction.id) for partition in partitions]
        if Standing.APPLIED in standings:
            return True
        unprepared = [
            partition
            for partition, standing in zip(partitions, standings, strict=True)
            if standing is not Standing.PREPARED
        ]
        if any(partition.failure is None for partition in unprepared):
            return False
        return None if unprepared else True

    def _discard_unknown(self, partition: Partition, known: set[tuple[TransactionId, TopicIdPartition]]) -> None:
        """Discard drafts of transactions that no coordinator knows, or not as ones that wrote here: a crash may have
        taken only the ADD of this partition.
        """
        if partition.failure is not None:
            return  # it does not know its journal's end, where it would write
        left = [
            txid for txid, transaction in partition.state.transactions.items()
            if transaction.is_undecided and (txid, partition.id) not in known
        ]  # fmt: skip
        for txid in left:
            partition.discard(txid, NO_FENCE, -1, lambda: None)
