"""The coordinator of transactions: carries out what the tables decide (DESIGN, section 4).

Commit: PREPARE_COMMIT and every participant's PREPARED are appended in one tick and made durable side by side; then the
ack; then APPLY to every participant, in the journal's order within a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from faircopy.broker.transactions.metadata_journal import MetadataJournal
from faircopy.broker.transactions.table import (
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
from faircopy.copier.fold import NO_FENCE, Standing
from faircopy.copier.partition import Appended, Partition, PartitionName
from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.errors import FaircopyError
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.journal.journal import JournalFull
from faircopy.storage.clock import Clock
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.murmur2 import partition_for

INIT_WAIT_SECONDS = 30.0
PRODUCER_FENCED_SINCE = 2  # AddPartitionsToTxn, AddOffsetsToTxn, EndTxn; below it, INVALID_PRODUCER_EPOCH


class CoordinatorOptions(NamedTuple):
    """Limits, in milliseconds."""

    max_timeout_ms: int
    transactional_id_expiration_ms: int


class TransactionCoordinator:
    """All transactions whose metadata journals this broker leads."""

    def __init__(
        self,
        journals: list[MetadataJournal],
        find_partition: Callable[[PartitionName], Partition | None],
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
        self._acks: dict[TransactionId, asyncio.Future[None]] = {}
        self._settled: dict[str, list[asyncio.Future[None]]] = {}
        self._heard_on: dict[tuple[int, int], int] = {}
        self._offsets_heard_on: dict[tuple[int, int], int] = {}
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
        """Raise the epoch, and abort what is open, in one tick."""
        producer = home.table.producers.get(transactional_id)
        if producer is None:
            identity = (fresh_id, 0)
        else:
            self._ensure_newest(producer, caller)
            self._forget_connections(producer)
            epoch = next_epoch(producer)
            identity = (producer.producer_id, epoch) if epoch is not None else (fresh_id, 0)
            if producer.current is not None:
                self._abort(home, producer.current, min(producer.epoch + 1, MAX_EPOCH + 1))
        # The answer may be lost, and then the same instance asks again.
        pardoned = caller[1] if caller[0] == identity[0] else NOBODY
        home.append(home.table.decide_fence(transactional_id, *identity, timeout_ms, pardoned))
        home.table.producers[transactional_id].updated_ms = self._clock.steady_ms()
        return identity

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
        connection: int,
        fenced: ErrorCode,
    ) -> None:
        """Add partitions to the producer's transaction, and tell their leaders its TxId. Raises TransactionRefused.

        Returns when that is written. Nothing waits for a disk, as PREPARE_COMMIT lists the participants itself; but
        what a crash of the process forgets must not be acked: the producer's next request would begin another
        transaction, and its commit would be half of what it means to.
        """
        home = self.journal_of(transactional_id)
        self._ensure_space(home)
        producer = home.table.producer_of(transactional_id, producer_id, epoch, fenced)
        self._ensure_not_older(producer, connection)
        named = {partition.name: partition for partition in partitions}
        if not named:
            return
        if producer.current is None:
            self._next_number += 1
        pairs = [(name, self._incarnation) for name in named]
        for entry in home.table.decide_add(producer, pairs, self._next_number, self._clock.steady_ms()):
            home.append(entry)
        assert producer.current is not None
        self._note_unwritten(home, producer.current.id)
        for partition in named.values():
            partition.open_transaction(producer.current.id)
        await home.journal.written()

    def _ensure_space(self, home: MetadataJournal) -> None:
        """Begin nothing on a full disk. Raises TransactionRefused."""
        try:
            home.journal.ensure_space()
        except JournalFull as error:
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

    def _ensure_not_older(self, producer: Producer, connection: int) -> None:
        self._ensure_newest_connection(self._heard_on, producer.identity, connection, producer.transactional_id)

    def ensure_offsets_not_older(self, transactional_id: str, producer_id: int, epoch: int, connection: int) -> None:
        """The same for offsets in a transaction, which go to another coordinator. Raises TransactionRefused."""
        identity = (producer_id, epoch)
        self._ensure_newest_connection(self._offsets_heard_on, identity, connection, transactional_id)

    def _ensure_newest_connection(
        self, heard_on: dict[tuple[int, int], int], identity: tuple[int, int], connection: int, transactional_id: str
    ) -> None:
        """Refuse what comes late, on a connection that its client has replaced (KAFKA-17754)."""
        if connection < heard_on.get(identity, connection):
            raise TransactionRefused(
                ErrorCode.INVALID_TXN_STATE,
                f"a request of {transactional_id!r} came on a connection that its producer has replaced",
            )
        heard_on[identity] = connection

    def _forget_connections(self, producer: Producer) -> None:
        self._heard_on.pop(producer.identity, None)
        self._offsets_heard_on.pop(producer.identity, None)

    async def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        connection: int,
        fenced: ErrorCode,
    ) -> None:
        """Commit or abort the open transaction; a commit returns when it can't be lost (I5). Raises
        TransactionRefused.
        """
        home = self.journal_of(transactional_id)
        producer = home.table.producer_of(transactional_id, producer_id, epoch, fenced)
        self._ensure_not_older(producer, connection)
        if commit and producer.current is not None:
            self._ensure_participants(home, producer.current)
        transaction = producer.current
        decided = home.table.decide_end(producer, commit=commit)
        if producer.must_abort:
            home.append(decided[0])
        elif transaction is None:
            await self._repeated_ack(producer)
        elif commit:
            await self._commit(home, producer, transaction, decided[0])
        else:
            self._abort(home, transaction, producer.epoch)

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
        for name in transaction.participants:
            partition = self._find_partition(name)
            if partition is None:
                del transaction.incarnations[name]
                continue
            try:
                partition.ensure_sound()
            except JournalFull as error:
                # Nothing is lost: the client asks again until there is space, or the timeout comes.
                raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
            except FaircopyError as error:
                self._abort(home, transaction, transaction.id.producer_epoch, untold=True)
                raise TransactionRefused(
                    ErrorCode.TRANSACTION_ABORTABLE,
                    f"transaction {transaction.id} of {transaction.transactional_id!r} is aborted: {name}: {error}",
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

        group = producer.group
        home.append(decided)
        home.order.decided(group, transaction.id)
        for partition in promising:
            partition.prepare(transaction.id, producer.finished_number, one_is_durable)
        home.journal.when_durable(one_is_durable)
        await ack

    def _promising(self, transaction: Transaction) -> list[Partition]:
        """Who has to promise before the ack: every participant (I5)."""
        return self._partitions(transaction)

    def _decision_is_durable(self, home: MetadataJournal, transaction: Transaction, ack: asyncio.Future[None]) -> None:
        self._acks.pop(transaction.id, None)
        if not ack.done():
            ack.set_result(None)
        for released in home.order.durable(group_of(transaction.transactional_id), transaction.id):
            # The ack is written in the loop's next tick: nothing that follows is to stand in its way.
            self._loop.call_soon(self._loop.call_soon, self._apply, home, home.table.transactions[released])

    def _apply(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Send APPLY to every participant, in one tick, so that every tick is a consistent cut."""
        finished = self._finished_number(home, transaction)
        participants = self._partitions(transaction)
        done = self._countdown(home, transaction, Kind.COMMITTED, len(participants))
        for partition in participants:
            # One that has failed is not counted down: it is sent APPLY again when it was repaired and restarted.
            if partition.failure is None:
                partition.apply(transaction.id, finished, done)

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
        home.append(NewEntry(kind, transaction.id, {}))
        producer = home.table.producers[transaction.transactional_id]

        def durable() -> None:
            busy = [txid.number for txid in producer.ending]
            if producer.current is not None:
                busy.append(producer.current.id.number)
            producer.finished_number = min(busy, default=producer.last_number + 1) - 1

        home.journal.when_durable_lazily(durable)
        if not producer.ending:
            for settled in self._settled.pop(transaction.transactional_id, ()):
                if not settled.done():
                    settled.set_result(None)

    def _finished_number(self, home: MetadataJournal, transaction: Transaction) -> int:
        return home.table.producers[transaction.transactional_id].finished_number

    # -- abort ---------------------------------------------------------------------------------------------------

    def _abort(
        self, home: MetadataJournal, transaction: Transaction, fence_epoch: int, *, untold: bool = False
    ) -> None:
        """Decide for abort and tell the participants. Nothing waits: what a crash forgets of this is aborted as
        well.
        """
        home.append(prepare_abort(transaction, fence_epoch, untold=untold))
        self._discard(home, transaction, fence_epoch)

    def _discard(self, home: MetadataJournal, transaction: Transaction, fence_epoch: int) -> None:
        finished = self._finished_number(home, transaction)
        participants = [partition for partition in self._partitions(transaction) if partition.failure is None]
        done = self._countdown(home, transaction, Kind.ABORTED, len(participants))
        for partition in participants:
            partition.discard(transaction.id, fence_epoch, finished, done)

    def abort_expired(self) -> list[Transaction]:
        """Abort the transactions past their timeout and fence their producers, who must not go on in ignorance."""
        expired = []
        for home in self.journals:
            for transaction in home.table.expired(self._clock.steady_ms()):
                self._abort_and_fence(home, transaction)
                expired.append(transaction)
        return expired

    def _abort_and_fence(self, home: MetadataJournal, transaction: Transaction) -> None:
        producer = home.table.producers[transaction.transactional_id]
        epoch = min(producer.epoch + 1, MAX_EPOCH + 1)
        self._abort(home, transaction, epoch)
        self._forget_connections(producer)
        # Its producer may come back, if no other instance has come since (KIP-588).
        fence = home.table.decide_fence(
            producer.transactional_id, producer.producer_id, epoch, producer.timeout_ms, pardoned=producer.epoch
        )
        home.append(fence)

    def forget_idle(self) -> None:
        """Forget transactional ids that nobody has used for long (transactional.id.expiration.ms)."""
        for home in self.journals:
            now_ms = self._clock.steady_ms()
            for transactional_id in home.table.forgettable(now_ms, self._options.transactional_id_expiration_ms):
                producer = home.table.producers[transactional_id]
                txid = TransactionId(producer.producer_id, producer.epoch, -1)
                home.append(NewEntry(Kind.FORGET, txid, {"id": transactional_id}))
                self._forget_connections(producer)

    def _partitions(self, transaction: Transaction) -> list[Partition]:
        found = (self._find_partition(name) for name in transaction.participants)
        return [partition for partition in found if partition is not None]

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self, partitions: Iterable[Partition], *, is_clean: bool, lost_power: bool) -> None:
        """After all journals are folded: finish what was decided, abort what lost its drafts, go on with the rest.

        `is_clean` says that the last run ended in order, with every draft durable: then open transactions go on.
        `lost_power` says that what was written, but not fsynced, may be lost.
        """
        for home in self.journals:
            for transaction in sorted(home.table.transactions.values(), key=lambda each: each.prepared_position):
                self._recover_transaction(home, transaction, is_clean)
            if lost_power and home.table.producers:
                # The begin of any transaction may be lost, with its drafts: nobody may go on as if nothing were.
                home.append(NewEntry(Kind.DOUBT, NO_TRANSACTION, {}))
        known = {
            (txid, name)
            for home in self.journals
            for txid, transaction in home.table.transactions.items()
            for name in transaction.participants
        }
        for partition in partitions:
            self._discard_unknown(partition, known)

    def _recover_transaction(self, home: MetadataJournal, transaction: Transaction, is_clean: bool) -> None:
        match transaction.phase:
            case Phase.PREPARE_COMMIT:
                self._recover_prepared(home, transaction)
            case Phase.PREPARE_ABORT:
                self._discard(home, transaction, transaction.id.producer_epoch)
            case Phase.ONGOING if is_clean:
                for partition in self._partitions(transaction):
                    partition.open_transaction(transaction.id)
            case _:
                self._abort(home, transaction, NO_FENCE, untold=True)

    def _recover_prepared(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Commit or abort; or leave it until a participant that has failed is repaired, and its group's later ones with
        it (P5).
        """
        is_promised = self._is_promised(transaction)
        if is_promised is False:
            self._abort(home, transaction, NO_FENCE, untold=True)
            return
        group = group_of(transaction.transactional_id)
        home.order.decided(group, transaction.id)
        if is_promised is None:
            self._undecided.add(transaction.id)
            return
        for released in home.order.durable(group, transaction.id):
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

    def _discard_unknown(self, partition: Partition, known: set[tuple[TransactionId, PartitionName]]) -> None:
        """Discard drafts of transactions that no coordinator knows, or not as ones that wrote here: a crash may have
        taken only the ADD of this partition.
        """
        if partition.failure is not None:
            return  # it does not know its journal's end, where it would write
        left = [
            txid for txid, transaction in partition.state.transactions.items()
            if transaction.is_undecided and (txid, partition.name) not in known
        ]  # fmt: skip
        for txid in left:
            partition.discard(txid, NO_FENCE, -1, lambda: None)
