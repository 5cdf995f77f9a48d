"""The coordinator of transactions: checks each request, and has it carried out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import ClassVar, NamedTuple

from faircopy.copier.fold import NO_FENCE
from faircopy.copier.producers import ConflictingSequence
from faircopy.errors import FaircopyError
from faircopy.journal.draft_space import TooManyDrafts
from faircopy.journal.entry import TransactionId
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.participant import NotLed, Participants
from faircopy.partition.partition import Appended, Partition
from faircopy.storage.clock import Clock
from faircopy.storage.expiry import names_in_short
from faircopy.storage.system import Buffer
from faircopy.transactions import decisions
from faircopy.transactions.commits import Commit, Commits
from faircopy.transactions.connections import LateRequest, ProducerConnections, RequestKind, Sent
from faircopy.transactions.decisions import TransactionRefused, asked_again
from faircopy.transactions.endings import Endings
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.joint_transactions import JointTransactions
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.recovery import Recovery, note_loss
from faircopy.transactions.reunion import IsThere, Missed, Reunion
from faircopy.transactions.state import ABORT_STATES, TransactionState
from faircopy.transactions.survival import Survival
from faircopy.transactions.timeout_limit import TimeoutLimit
from faircopy.transactions.timeouts import Timeouts, idle
from faircopy.transactions.transaction import NOBODY, NewEntry, Producer, Transaction
from faircopy.transactions.unwritten import UnwrittenTransactions
from faircopy.wire.batch import BatchHeader
from faircopy.wire.error_codes import ErrorCode

log = logging.getLogger(__name__)

INIT_WAIT_SECONDS = 30.0
FINISH_SECONDS = 1.0
TRY_AGAIN = {
    RequestKind.PRODUCE: ErrorCode.NOT_ENOUGH_REPLICAS,
    RequestKind.TRANSACTION: ErrorCode.CONCURRENT_TRANSACTIONS,
    RequestKind.OFFSETS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What a live client understands as "nothing was done, retry soon"."""


class CoordinatorOptions(NamedTuple):
    """Limits, in milliseconds; and whether beginnings of transactions are fsynced before the ack."""

    max_timeout_ms: int
    transactional_id_expiration_ms: int
    is_durable: bool = False


class TransactionCoordinator:
    """All transactions of some metadata journals, as their leader of this `epoch`.

    `number_of` maps a transactional id to the number of its journal; all coordinators of the process share
    `ranks`, and what is known of `connections`: these outlive a coordinator that hands over to another one
    here. Whatever must survive is in the journals and their tables. What is here may be lost with the
    process.
    """

    commits_type: ClassVar[type[Commits]] = Commits
    endings_type: ClassVar[type[Endings]] = Endings

    def __init__(
        self,
        journals: Mapping[int, MetadataJournal],
        number_of: Callable[[str], int],
        find_participant: Participants,
        next_producer_id: Callable[[], Awaitable[int]],
        epoch: int,
        ranks: Numbers,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        options: CoordinatorOptions,
        connections: ProducerConnections,
    ) -> None:
        self.journals = list(journals.values())
        self._journals = journals
        self._number_of = number_of
        self._find_participant = find_participant
        self._next_producer_id = next_producer_id
        self._clock = clock
        self._options = options
        self._numbers = Numbers(epoch)
        self._finished = FinishedNumbers()
        self._endings = self.endings_type(find_participant, self._finished, loop)
        self._commits = self.commits_type(
            find_participant, self._finished, ranks, self._endings.committed, loop
        )
        self._timeout_limit = TimeoutLimit(options.max_timeout_ms, clock)
        self.joint = JointTransactions(
            self.journal_of, find_participant, next_producer_id, self._commits, self._endings, clock,
            self._timeout_limit, connections, is_durable=options.is_durable,
        )  # fmt: skip
        self._connections = connections
        self._timeouts = Timeouts()
        self._unwritten = UnwrittenTransactions()
        self.once_written = self._unwritten.once_written
        self._may_have_begun: set[str] = set()
        self._is_led = True
        for home in self.journals:
            # All that those which sleep have begun is durably over.
            home.table.producers.on_sleep = self._finished.falls_asleep
            home.table.producers.on_wake = self._finished.wakes

    def journal_of(self, transactional_id: str) -> MetadataJournal:
        """The journal J-fn(G) of a transactional id. Raises TransactionRefused if somebody else leads it."""
        if not self._is_led:
            raise deposed()
        return self._journals[self._number_of(transactional_id)]

    # -- InitProducerId --------------------------------------------------------------------------------------

    async def init_producer(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int, connection: int
    ) -> tuple[int, int]:
        """A (producer id, epoch) that fences all earlier instances, once their transactions have ended.

        `producer_id` and `epoch` are what the caller had before (KIP-360), or -1; `connection` is the one
        that it asks over. Raises TransactionRefused.
        """
        self._timeout_limit.ensure(transactional_id, timeout_ms)
        home = self.journal_of(transactional_id)
        fresh_id = NOBODY
        existing = home.table.producers.get(transactional_id)
        if existing is None or decisions.next_epoch(existing) is None:
            with asked_again():
                fresh_id = await self._next_producer_id()
        identity = self._fence(transactional_id, timeout_ms, (producer_id, epoch), fresh_id)
        self._connections.begin(identity, connection)
        await home.journal.durable()
        await self._wait_for_endings(home, transactional_id)
        return identity

    def _fence(
        self, transactional_id: str, timeout_ms: int, caller: tuple[int, int], fresh_id: int
    ) -> tuple[int, int]:
        """Raise the epoch, and abort what is open."""
        # Look again: while the producer id was fetched, another request may have come, or another leader.
        home = self.journal_of(transactional_id)
        home.ensure_replicas()
        producer = home.table.producers.get(transactional_id)
        now_ms = self._clock.steady_ms()
        entry = decisions.new_instance(
            producer, transactional_id, caller, fresh_id, timeout_ms, now_ms,
            is_durable=self._options.is_durable,
        )  # fmt: skip
        self._append_fence(home, producer, entry)
        return entry.transaction[:2]

    def _append_fence(self, home: MetadataJournal, producer: Producer | None, entry: NewEntry) -> None:
        """Fence the present instance and abort what it has open, in one entry: a crash could part two."""
        fenced = producer.current if producer is not None else None
        if producer is not None:
            self._forget_instance(producer)
        home.append(entry)
        if fenced is not None:
            self._endings.discard(home, fenced)

    async def _wait_for_endings(self, home: MetadataJournal, transactional_id: str) -> None:
        try:
            await asyncio.wait_for(self._endings.all_over(home, transactional_id), INIT_WAIT_SECONDS)
        except TimeoutError:
            raise TransactionRefused(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the last transaction of {transactional_id!r} is still being copied: try again",
            ) from None

    def _forget_instance(self, producer: Producer) -> None:
        """Forget an instance that is fenced, or whose transactional id is forgotten."""
        self._connections.forget(producer.identity)
        self._may_have_begun.discard(producer.transactional_id)

    # -- requests of an open transaction ---------------------------------------------------------------------

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        """Add partitions to the producer's transaction, and tell them its TxId. Raises TransactionRefused.

        Returns once that is kept. It need not be durable, as PREPARE_COMMIT lists the participants itself,
        unless the transaction is to survive a loss of power. But what a crash of the process forgets must not
        be acked: the producer's next request would begin another transaction, and its commit would be half of
        what it means to commit.
        """
        home = self.journal_of(transactional_id)
        producer = decisions.newest_producer(home.table, transactional_id, producer_id, epoch, fenced)
        self._admit(producer.identity, RequestKind.TRANSACTION, sent)
        self._ensure_space(home, producer)
        named = {partition.id: partition for partition in partitions}
        if not named:
            return
        transaction = self._append_added(home, producer, named)
        is_durable = transaction.needs_durable
        self._may_have_begun.discard(transactional_id)
        self._unwritten.note(home, transaction.id, is_durable=is_durable)
        for each, partition in named.items():
            partition.open_transaction(
                transaction.id, transactional_id, is_durable=each in transaction.durable_in
            )
        await home.safe(is_durable=is_durable)

    def _append_added(
        self, home: MetadataJournal, producer: Producer, named: Mapping[TopicIdPartition, Partition]
    ) -> Transaction:
        """Append the partitions, and begin the transaction if need be."""
        is_new = producer.current is None
        number = self._numbers.take() if is_new else NOBODY
        now_ms = self._clock.steady_ms()
        epochs = {each: partition.journal.leader_epoch for each, partition in named.items()}
        durable_in = [each for each, partition in named.items() if partition.acks_drafts_durably]
        for entry in decisions.add(producer, epochs, number, now_ms, durable_in):
            home.append(entry)
        assert producer.current is not None
        if is_new:
            self._timeouts.note(producer.current)
        return producer.current

    def _ensure_space(self, home: MetadataJournal, producer: Producer) -> None:
        """See `MetadataJournal.ensure_space`."""
        try:
            home.ensure_space()
        except TransactionRefused:
            if producer.current is None:
                self._may_have_begun.add(producer.transactional_id)
            raise

    def admit_draft(self, transaction: TransactionId, sent: Sent) -> None:
        """Admit a Produce into an open transaction. Raises TransactionRefused if it comes late."""
        self._admit(transaction[:2], RequestKind.PRODUCE, sent)

    def append_draft(
        self, partition: Partition, batch: Buffer, header: BatchHeader | None, records: int,
        transaction: TransactionId, done: Appended, *, may_begin: bool = False,
    ) -> None:  # fmt: skip
        """See `Partition.append_draft`; `done` is called once its transaction is kept, too. One that is too
        large, or has a batch that may be late, is aborted. Raises RejectedBatch, TransactionRefused.
        """
        safe = self._unwritten.once_written(transaction, done)
        try:
            partition.append_draft(batch, header, records, transaction, safe, may_begin=may_begin)
        except (TooManyDrafts, ConflictingSequence) as error:
            self._give_up(transaction, error)
            raise TransactionRefused(ErrorCode.TRANSACTION_ABORTABLE, f"{transaction}: {error}") from error

    def _give_up(self, transaction: TransactionId, reason: FaircopyError) -> None:
        """Abort an open transaction that its producer must not go on with."""
        for home in self.journals:
            known = home.table.transactions.get(transaction)
            if known is not None and known.state is TransactionState.ONGOING:
                self._endings.abort(home, known, NO_FENCE, untold=True)
                log.warning(
                    "transaction %s of %r is aborted: %s", transaction, known.transactional_id, reason
                )

    def admit_offsets(self, transactional_id: str, producer_id: int, epoch: int, sent: Sent) -> None:
        """Admit a TxnOffsetCommit. Raises TransactionRefused if it is late, or not of the newest instance."""
        table = self.journal_of(transactional_id).table
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH
        producer = decisions.newest_producer(table, transactional_id, producer_id, epoch, fenced)
        self._admit(producer.identity, RequestKind.OFFSETS, sent)

    def _admit(self, identity: tuple[int, int], kind: RequestKind, sent: Sent) -> None:
        """Raise TransactionRefused for a late request (KAFKA-17754). Call after all other checks: a request
        that names somebody else's identity must leave no trace.
        """
        try:
            self._connections.admit(identity, kind, sent)
        except LateRequest as error:
            raise TransactionRefused(TRY_AGAIN[kind], f"producer {identity[0]}: {error}") from error

    def refusal_of_draft(self, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        """The answer to an instance whose draft belongs to no open transaction."""
        if not self._is_led:
            return TRY_AGAIN[RequestKind.PRODUCE]
        producer = self.journal_of(transactional_id).table.producers.get(transactional_id)
        if producer is not None and producer.producer_id == producer_id:
            if producer.epoch > epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if producer.must_abort:
                return ErrorCode.TRANSACTION_ABORTABLE
        return ErrorCode.INVALID_TXN_STATE

    # -- EndTxn ----------------------------------------------------------------------------------------------

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
        """Commit or abort the open transaction. A commit returns once it can't be lost (I5); an abort once it
        is as safe as the acks of its drafts, and every participant has been told: drafts of the next
        transaction come behind that. Raises TransactionRefused.
        """
        home = self.journal_of(transactional_id)
        producer = decisions.newest_producer(home.table, transactional_id, producer_id, epoch, fenced)
        self._admit(producer.identity, RequestKind.TRANSACTION, sent)
        transaction = producer.current
        if commit and transaction is not None:
            self._ensure_promises(home, transaction)
        if not commit and transaction is None:
            self._ensure_none_forgotten(home, producer)
        decided = decisions.end(producer, self._clock.steady_ms(), commit=commit)
        if producer.must_abort and decided is not None:
            home.append(decided)
            await home.safe(is_durable=producer.needs_durable)
        elif transaction is None:
            await self._repeated_ack(home, producer)
        elif commit:
            await self._commits.start(home, transaction, decisions.prepare_commit(transaction))
        else:
            self._endings.abort(home, transaction, producer.epoch)
            await home.safe(is_durable=transaction.needs_durable)

    def _ensure_promises(self, home: MetadataJournal, transaction: Transaction) -> None:
        """Raise TransactionRefused if a participant can't promise. If one has failed, abort."""
        for partition_id in transaction.participants:
            try:
                self._find_participant(partition_id).ensure_writable()
            except (JournalFull, NotLed) as error:
                # Nothing is lost: the client retries until there is space, or a leader, or its transaction
                # times out.
                raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
            except FaircopyError as error:
                self._endings.abort(home, transaction, transaction.id.producer_epoch, untold=True)
                raise TransactionRefused(
                    ErrorCode.TRANSACTION_ABORTABLE,
                    f"transaction {transaction.id} of {transaction.transactional_id!r} is aborted: {error}",
                ) from error

    def _ensure_none_forgotten(self, home: MetadataJournal, producer: Producer) -> None:
        """Refuse an abort that finds nothing open, if it may be meant for a transaction whose BEGIN was
        refused, here or by an earlier leader, or was lost in a crash before it was acknowledged. If the
        producer's last transaction is committed, "aborted" could be a lie, and INVALID_TXN_STATE is fatal.
        The error code used here makes clients renew their epoch, which aborts whatever there is (KIP-360).
        Raises TransactionRefused.
        """
        is_abort_of_the_last = producer.must_abort or producer.last_state in ABORT_STATES
        if self._may_have_one(home, producer.transactional_id) and not is_abort_of_the_last:
            raise TransactionRefused(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"no transaction of {producer.transactional_id!r} is known to have begun since its last one, "
                f"which is {producer.state_name}: call InitProducerId, which aborts whatever there is",
            )

    def _may_have_one(self, home: MetadataJournal, transactional_id: str) -> bool:
        return transactional_id in self._may_have_begun or home.table.producers.is_untouched(transactional_id)

    async def _repeated_ack(self, home: MetadataJournal, producer: Producer) -> None:
        """Answer a repeated request when the first one is answered. Raises TransactionRefused."""
        if self._commits.is_undecided(producer.ending):
            raise TransactionRefused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"whether the last transaction of {producer.transactional_id!r} is committed can't be known "
                f"until a partition that takes part in it is repaired",
            )
        needs_durable = producer.needs_durable
        for transaction in list(producer.ending):
            ack = self._commits.ack_of(transaction)
            if ack is not None:
                await asyncio.shield(ack)
        await home.safe(is_durable=needs_durable)

    # -- upkeep ----------------------------------------------------------------------------------------------

    def abort_expired(self) -> list[Transaction]:
        """Abort the transactions past their timeout, and fence their producers."""
        now_ms = self._clock.steady_ms()
        expired = []
        for producer in self._timeouts.expired((home.table for home in self.journals), now_ms):
            assert producer.current is not None
            expired.append(producer.current)
            home = self.journal_of(producer.transactional_id)
            self._append_fence(home, producer, decisions.expire(producer, now_ms))
        return expired

    async def forget_idle(self) -> set[int]:
        """Forget transactional ids that have not been used for transactional.id.expiration.ms. Returns their
        producer ids once that is durable.
        """
        now_ms, idle_ms = self._clock.steady_ms(), self._options.transactional_id_expiration_ms
        forgotten = set()
        for home in self.journals if self._is_led else ():
            expired = idle(home.table, now_ms, idle_ms)
            for producer in expired:
                home.append(decisions.forget(producer))
                self._finished.forget(producer.producer_id)
                self._forget_instance(producer)
                forgotten.add(producer.producer_id)
            if expired:
                log.info(
                    "%d transactional ids are forgotten, unused for transactional.id.expiration.ms=%d: %s",
                    len(expired), idle_ms, names_in_short([each.transactional_id for each in expired]),
                )  # fmt: skip
        if forgotten:
            await asyncio.gather(*(home.journal.durable() for home in self.journals))
        return forgotten

    async def forget_gone(self) -> set[int]:
        """Producer ids of members of joint groups that have done their work, once that is durable."""
        gone = set[int]().union(*(home.table.take_gone() for home in self.journals if self._is_led))
        if gone:
            await asyncio.gather(*(home.journal.durable() for home in self.journals))
        return gone

    # -- recovery --------------------------------------------------------------------------------------------

    def settle(self, survival: Survival) -> list[Commit]:
        """Settle all transactions, once all journals are folded. Returns the commits that may be applied."""
        for home in self.journals:
            self._finished.recovered(home.table.producers.awake.values())
            if survival.is_loss:
                note_loss(home, is_all=survival is Survival.UNKNOWN)
            # Whether an earlier leader has refused a BEGIN, or lost it in a crash, can't be known here.
            self._may_have_begun.update(home.table.producers.awake)
        recovery = Recovery(self._find_participant, self._commits, self._endings, survival)
        promised = recovery.settle(self.journals)
        if recovery.aborted:
            names = [f"{each.transactional_id} ({each.id})" for each in recovery.aborted]
            log.warning(
                "%d transactions are aborted, as a part of what they wrote may be lost; their producers are "
                "told: %s", len(names), names_in_short(names),
            )  # fmt: skip
        return promised

    def adopt(self, transaction: TransactionId, partition: Partition) -> bool:
        """Add a partition that has drafts of an open transaction, which a crash took the ADD of. False if
        there is no such transaction here.
        """
        for home in self.journals:
            known = home.table.transactions.get(transaction)
            if known is not None and known.state is TransactionState.ONGOING:
                is_durable = partition.acks_drafts_durably
                epochs = {partition.id: partition.journal.leader_epoch}
                home.append(decisions.added(transaction, epochs, [partition.id] if is_durable else ()))
                partition.resume_transaction(transaction, known.transactional_id, is_durable=is_durable)
                return True
        return False

    def go_on(self, commit: Commit) -> None:
        """Apply a commit that `settle` or `reunion(...).decide` returned."""
        self._commits.go_on(commit)

    # -- when leaders change ---------------------------------------------------------------------------------

    def reunion(self, is_there: IsThere) -> Reunion:
        """The reunion with partitions that are led again."""
        return Reunion(self.journals, self._find_participant, self._commits, self._endings, is_there)

    def unapplied(self) -> list[Commit]:
        """The commits that some participant may have yet to apply, even after `depose`."""
        return self._commits.unapplied()

    def apply_again(self, missed: Missed) -> None:
        """Tell participants about a commit that they have missed."""
        self._commits.apply_again(*missed)

    async def finish(self) -> None:
        """Refuse all requests from now on, and wait a little for the decided commits: nobody else can tell
        their clients so soon.
        """
        self._is_led = False
        acks = self._commits.acks()
        if acks:
            await asyncio.wait(acks, timeout=FINISH_SECONDS)

    def depose(self) -> None:
        """After `finish`: another coordinator takes over, and nothing more is written or answered here.
        Clients whose commit is in flight are told to ask the other coordinator.
        """
        error = deposed()
        self._commits.depose(error)
        self._endings.depose(error)


def deposed() -> TransactionRefused:
    """The answer of a coordinator that leads no more."""
    return TransactionRefused(ErrorCode.NOT_COORDINATOR, "another coordinator leads now: ask it again")
