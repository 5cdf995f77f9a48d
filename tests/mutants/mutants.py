"""Mutants: faircopy with one rule broken. The simulation or the tests must notice every one of them.

A mutant changes the product in this process while it is applied, and names the invariant that it breaks.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any
from unittest import mock

from faircopy.api import list_offsets
from faircopy.copier import checkpoint, copy, fold
from faircopy.copier.log_copier import LogCopier
from faircopy.copier.producers import ProducerState
from faircopy.datalog import log as data_log
from faircopy.datalog.epochs import Epochs
from faircopy.datalog.segment import LogSegment
from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.hosting.plain_tables import PlainTables
from faircopy.journal import format_4, group_commit, recovery, reverse_list, segment
from faircopy.journal.entry import HEADER_BYTES, NOWHERE, Entry, Kind
from faircopy.journal.journal import Journal
from faircopy.journal.segments import Segments
from faircopy.partition import checkpointing, opening, partition
from faircopy.shard import shards
from faircopy.storage.clock import SteadyClock
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.file import File
from faircopy.transactions import decisions, order, settlement
from faircopy.transactions import recovery as transaction_recovery
from faircopy.transactions.commits import Commits
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.reunion import Reunion
from faircopy.transactions.state import TransactionState
from faircopy.transactions.table import TransactionTable

Mutant = Callable[[], contextlib.AbstractContextManager[Any]]
MUTANTS: dict[str, Mutant] = {}


def mutant(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Register a mutant by its name."""
    MUTANTS[make.__name__] = contextlib.contextmanager(make)
    return make


def replaced(owner: Any, name: str, new: Any) -> contextlib.AbstractContextManager[Any]:
    """Put `new` in place of an attribute. It must take what the attribute takes: a TypeError is found by any
    test, and shows nothing.
    """
    old = inspect.getattr_static(owner, name)
    assert not inspect.isroutine(old) or parameters(new) in (None, parameters(old)), (owner, name)
    return mock.patch.object(owner, name, new)


def parameters(function: Any) -> list[Any] | None:
    """Of which kind each parameter is; None if the function takes any."""
    kinds = [
        each.kind for each in inspect.signature(getattr(function, "__func__", function)).parameters.values()
    ]
    return None if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & {*kinds} else kinds


# -- what is durable -----------------------------------------------------------------------------------------


@mutant
def skip_the_journals_fsync() -> Iterator[Any]:
    """I2: entries count as durable when they are written."""
    with replaced(group_commit, "sync_files", lambda files: None):
        yield


@mutant
def release_before_durable() -> Iterator[Any]:
    """I2: effects are released at once."""
    with replaced(Journal, "when_durable", lambda self, callback: self._loop.call_soon(callback)):
        yield


@mutant
def recover_what_may_be_lost() -> Iterator[Any]:
    """I2: a start copies what it finds in the page cache before that is fsynced."""
    with replaced(recovery, "sync_what_was_found", lambda segments: None):
        yield


@mutant
def forget_the_directory_fsync() -> Iterator[Any]:
    """A new segment's name is not made durable."""
    with replaced(segment, "sync_directory", lambda path: None):
        yield


@mutant
def write_the_segment_header_without_fsync() -> Iterator[Any]:
    """A segment's name appears before its header is durable."""
    real = File.sync

    def sync(file: File) -> None:
        if file.path.suffix != ".tmp":
            real(file)

    with replaced(File, "sync", sync):
        yield


@mutant
def checkpoint_without_syncing_the_log() -> Iterator[Any]:
    """I6: a checkpoint relies on a data log that is not fsynced."""

    async def sync(self: LogCopier) -> None:
        self.log.take_unsynced()

    with replaced(LogCopier, "sync", sync):
        yield


@mutant
def go_on_after_a_failed_fsync() -> Iterator[Any]:
    """I10: a failed fsync is tried again, and the second one succeeds."""

    def sync_files(files: list[File]) -> None:
        for file in files:
            with contextlib.suppress(Exception):
                file.sync()

    with replaced(group_commit, "sync_files", sync_files):
        yield


# -- transactions --------------------------------------------------------------------------------------------


@mutant
def ack_without_the_participants() -> Iterator[Any]:
    """I5: a commit waits for PREPARE_COMMIT only."""
    with replaced(Commits, "promising", lambda self, transaction: []):
        yield


@mutant
def apply_twice() -> Iterator[Any]:
    """I4: a second APPLY of a transaction takes effect again."""
    real_decide, real_apply = fold.PartitionState._decide, fold.PartitionState.fold_apply

    def decide(self: fold.PartitionState, transaction: Any, outcome: fold.Branch) -> None:
        before = self.transactions.get(transaction)
        real_decide(self, transaction, outcome)
        if before is not None and outcome.standing is fold.Standing.APPLIED:
            before.standing = outcome.standing
            self.transactions[transaction] = before

    def fold_apply(self: fold.PartitionState, entry: Any, finished: int, rank: int) -> Any:
        known = self.transactions.get(entry.transaction)
        if known is not None and known.standing is fold.Standing.APPLIED:
            known.standing = fold.Standing.PREPARED
        return real_apply(self, entry, finished, rank)

    def apply(self: partition.Partition, transaction: Any, finished: int, rank: int, done: Any) -> None:
        self._close(transaction)
        entry = self.journal.append(
            Kind.APPLY, fold.APPLY_PAYLOAD.pack(finished, rank), transaction=transaction
        )
        self._release(self.state.fold_apply(entry, finished, rank), done)

    with (
        replaced(fold.PartitionState, "_decide", decide),
        replaced(fold.PartitionState, "fold_apply", fold_apply),
        replaced(partition.Partition, "apply", apply),
    ):
        yield


@mutant
def drop_the_first_draft() -> Iterator[Any]:
    """I3: the reverse list is not walked to its beginning."""
    real = copy.all_drafts

    def all_drafts(*arguments: Any) -> Any:
        drafts = real(*arguments)
        return drafts[1:] + drafts[:1] if len(drafts) > 1 else drafts

    with replaced(copy, "all_drafts", all_drafts):
        yield


@mutant
def drop_previous() -> Iterator[Any]:
    """I3: a draft does not know the one before it."""
    real = Journal.append

    def append(self: Journal, kind: Any, payload: Any = b"", **named: Any) -> Any:
        if kind == Kind.DRAFT:
            named["previous"] = NOWHERE
        return real(self, kind, payload, **named)

    with replaced(Journal, "append", append):
        yield


@mutant
def believe_every_duplicate_is_new() -> Iterator[Any]:
    """A batch that a client sends again is appended again (KIP-98)."""
    with replaced(ProducerState, "find_duplicate", lambda self, header: None):
        yield


@mutant
def cut_damage_like_a_torn_tail() -> Iterator[Any]:
    """I9: whatever is not sound is cut."""
    with replaced(recovery, "ensure_torn", lambda *arguments, **named: None):
        yield


@mutant
def leave_the_torn_tail() -> Iterator[Any]:
    """A torn tail is not cut, so that old bytes may be taken for entries later."""

    def cut(self: Segments, end: int) -> None:
        pass

    with replaced(Segments, "cut", cut):
        yield


@mutant
def leave_the_log_after_its_checkpoint() -> Iterator[Any]:
    """I6: recovery does not cut the data log at the checkpoint's end."""
    with replaced(LogSegment, "begin_again_at", lambda self, byte: None):
        yield


@mutant
def reclaim_too_much() -> Iterator[Any]:
    """I7: segments with drafts of open transactions are deleted."""
    with replaced(fold.PartitionState, "first_needed_position", property(lambda self: self.position)):
        yield


@mutant
def skip_the_crc() -> Iterator[Any]:
    """I9: entries are not checked."""
    with replaced(format_4, "check", lambda *arguments: None):
        yield


@mutant
def reuse_transaction_numbers() -> Iterator[Any]:
    """I4: numbers begin anew at each start, so drafts of a forgotten transaction may join a later one."""
    real = TransactionCoordinator.__init__

    def begin(self: TransactionCoordinator, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        self._numbers = Numbers(1)

    with replaced(TransactionCoordinator, "__init__", begin):
        yield


@mutant
def commit_what_was_lost() -> Iterator[Any]:
    """I5: a coordinator that recovers in PREPARE_COMMIT does not ask if every participant has promised."""
    with replaced(transaction_recovery, "is_promised", lambda find_participant, transaction: True):
        yield


@mutant
def leave_drafts_of_the_unknown() -> Iterator[Any]:
    """Drafts of transactions that a crash made the coordinator forget stay open for ever."""
    with replaced(settlement, "discard_unknown", lambda journals, partitions: None):
        yield


@mutant
def remember_the_forgotten() -> Iterator[Any]:
    """Partitions remember the last transaction of every transactional id for ever."""
    with replaced(partition.Partition, "forget_producers", lambda self, producer_ids: None):
        yield


@mutant
def remember_the_forgotten_after_a_crash() -> Iterator[Any]:
    """The same, if a crash comes before partitions are told."""
    with replaced(settlement, "forget_unknown", lambda journals, partitions: None):
        yield


@mutant
def tell_nobody_of_aborts() -> Iterator[Any]:
    """A producer whose transaction a crash has ended may commit the rest of it."""
    with replaced(decisions, "ensure_told", lambda producer: None):
        yield


@mutant
def let_zombies_in() -> Iterator[Any]:
    """KIP-98: the epoch of a request is ignored."""
    real = decisions.newest_producer

    def newest_producer(
        table: TransactionTable, transactional_id: str, producer_id: int, epoch: int, fenced: Any
    ) -> Any:
        known = table.producers.get(transactional_id)
        return real(table, transactional_id, producer_id, epoch if known is None else known.epoch, fenced)

    with replaced(decisions, "newest_producer", newest_producer):
        yield


@mutant
def take_late_requests() -> Iterator[Any]:
    """KAFKA-17754: a request on a connection that its client has replaced ends a later transaction."""
    with replaced(TransactionCoordinator, "_admit", lambda self, *arguments: None):
        yield


@mutant
def apply_in_any_order() -> Iterator[Any]:
    """P5: a transaction is applied when it is durable, whatever came before it in its group."""

    def durable(self: GroupOrder, group: str, transaction: Any) -> Any:
        self._waiting[group].remove(transaction)
        return [transaction]

    with replaced(GroupOrder, "durable", durable):
        yield


@mutant
def apply_again_in_any_order() -> Iterator[Any]:
    """G0: after a crash between the participants' APPLYs, groups go on in another order than before."""
    with replaced(order, "by_rank", in_journals_order), replaced(settlement, "by_rank", in_journals_order):
        yield


def in_journals_order(decided: Sequence[Any]) -> list[Any]:
    return [item for _, _, item in decided]


# -- readers -------------------------------------------------------------------------------------------------


@mutant
def tell_ends_at_once() -> Iterator[Any]:
    """P8: ListOffsets does not wait until what was acknowledged is visible."""

    async def catch_up(partition: Any, clock: Any) -> None:
        pass

    with replaced(list_offsets, "catch_up", catch_up):
        yield


@mutant
def tell_offsets_at_once() -> Iterator[Any]:
    """P8: OffsetFetch neither waits for acknowledged offsets nor says that they are unstable."""

    async def settle(self: OffsetsJournals, group: str) -> bool:
        return True

    with (
        replaced(OffsetsJournals, "settle", settle),
        replaced(OffsetsJournals, "unstable", lambda self, group: set()),
    ):
        yield


@mutant
def publish_in_the_middle() -> Iterator[Any]:
    """A plain table's cut is not one tick: each partition's end is read only when its turn comes."""
    real = PlainTables._part

    async def part(self: PlainTables, table: Any, partition: Any, end_offset: int) -> Any:
        await asyncio.sleep(0.2)
        return await real(self, table, partition, partition.log.end_offset)

    with replaced(PlainTables, "_part", part):
        yield


# -- space, and failures of the disk -------------------------------------------------------------------------


@mutant
def trim_before_the_checkpoint() -> Iterator[Any]:
    """I6: the segment in which the last checkpoint ends is deleted."""
    real = data_log.DataLog.take_gone
    with replaced(data_log.DataLog, "take_gone", lambda self, checkpointed: real(self, 1 << 62)):
        yield


@mutant
def believe_the_page_cache() -> Iterator[Any]:
    """I10: after a failed fsync, the next start believes that what it reads is on disk."""
    with replaced(DataDirectory, "is_unclean", False):
        yield


@mutant
def forget_sequences_in_checkpoints() -> Iterator[Any]:
    """I6: a checkpoint does not hold the producers' sequence numbers."""
    real = checkpoint.changes_of

    def changes_of(identity: bytes, state: Any, changed: Any) -> Any:
        return real(identity, state, changed._replace(producers=set()))

    with replaced(checkpointing, "changes_of", changes_of):
        yield


@mutant
def forget_open_transactions_in_checkpoints() -> Iterator[Any]:
    """I6: a checkpoint does not hold the heads of open transactions."""
    real = checkpoint.changes_of

    def changes_of(identity: bytes, state: Any, changed: Any) -> Any:
        return real(identity, state, changed._replace(transactions=set()))

    with replaced(checkpointing, "changes_of", changes_of):
        yield


# -- what foreign suites and hostile use have found ----------------------------------------------------------


@mutant
def age_by_the_wall_clock() -> Iterator[Any]:
    """Ages follow the wall clock, which may jump."""
    with replaced(SteadyClock, "steady_ms", SteadyClock.wall_ms):
        yield


@mutant
def take_any_sequence_of_the_unknown() -> Iterator[Any]:
    """A batch after a refused one is accepted, and the retry of the refused one is called a duplicate."""
    real = fold.PartitionState.producer

    def producer(self: fold.PartitionState, producer_id: int, epoch: int) -> Any:
        found = real(self, producer_id, epoch)
        found.is_forgotten = found.is_forgotten or not found.seen
        return found

    with (
        replaced(fold.PartitionState, "producer", producer),
        replaced(ProducerState, "_has_written_all_before", lambda self, header: True),
    ):
        yield


@mutant
def write_into_what_is_folded() -> Iterator[Any]:
    """The time of a transactional id's last use is set outside its fold, and forgotten with the process."""
    real = MetadataJournal.append

    def append(self: MetadataJournal, entry: Any) -> None:
        at_ms = entry.payload.pop("at_ms", 0)
        real(self, entry._replace(payload=entry.payload | {"at_ms": 0}) if at_ms else entry)
        if at_ms:
            self.table.producers[entry.payload["id"]].updated_ms = at_ms

    with replaced(MetadataJournal, "append", append):
        yield


@mutant
def abort_and_fence_in_two_entries() -> Iterator[Any]:
    """A crash between the two leaves a producer that is neither fenced nor told, and commits the rest."""
    real = TransactionCoordinator._append_fence

    def append_fence(self: TransactionCoordinator, home: Any, producer: Any, entry: Any) -> None:
        if producer is not None and producer.current is not None:
            self._endings.abort(home, producer.current, producer.epoch + 1)
        real(self, home, producer, entry)

    with replaced(TransactionCoordinator, "_append_fence", append_fence):
        yield


@mutant
def checkpoint_epoch_0() -> Iterator[Any]:
    """I6: a checkpoint does not hold the producers' epochs."""
    real = checkpoint.encode_producer

    def encode_producer(producer: Any) -> bytes:
        return b"\0\0" + real(producer)[2:]

    with replaced(checkpoint, "encode_producer", encode_producer):
        yield


@mutant
def checkpoint_without_leader_epochs() -> Iterator[Any]:
    """I6: a checkpoint does not hold the history of leader epochs."""
    real = checkpoint.encode_checkpoint

    def encode_checkpoint(identity: bytes, of: checkpoint.Checkpoint) -> Any:
        return real(identity, of._replace(epochs=Epochs()))

    with replaced(checkpointing, "encode_checkpoint", encode_checkpoint):
        yield


@mutant
def bear_the_epoch_of_who_copies() -> Iterator[Any]:
    """I1: what recovery copies again has the epoch of the new leader, not of the entry that decided it."""
    real = LogCopier._place

    def place(self: LogCopier, batch: memoryview, base_offset: int, leader_epoch: int) -> Any:
        return real(self, batch, base_offset, self._journal.leader_epoch)

    with replaced(LogCopier, "_place", place):
        yield


@mutant
def lead_again_under_an_old_epoch() -> Iterator[Any]:
    """I8: a partition is led under the epoch of an earlier leader."""

    def ensure_leads(_partition: partition.Partition) -> None:
        pass

    with replaced(opening, "ensure_leads", ensure_leads):
        yield


@mutant
def ack_a_repeated_plain_batch_at_once() -> Iterator[Any]:
    """P2: a batch that is sent again is acknowledged before the first one is durable."""
    real = partition.Partition.append_plain

    def append_plain(self: partition.Partition, batch: Any, header: Any, records: int, done: Any) -> None:
        seen = (
            self._producer(header).find_duplicate(header)
            if header is not None and header.producer_id >= 0
            else None
        )
        if seen is not None:
            done(seen.base_offset)
        else:
            real(self, batch, header, records, done)

    with replaced(partition.Partition, "append_plain", append_plain):
        yield


@mutant
def ack_a_repeated_commit_at_once() -> Iterator[Any]:
    """I5: an EndTxn that is sent again is answered before the first one's commit is durable."""

    async def repeated_ack(self: TransactionCoordinator, producer: Any) -> None:
        pass

    with replaced(TransactionCoordinator, "_repeated_ack", repeated_ack):
        yield


@mutant
def hand_out_epochs_at_once() -> Iterator[Any]:
    """InitProducerId is answered before the epoch is durable, so after a crash two instances may have it."""

    real, really_durable = TransactionCoordinator.init_producer, Journal.durable
    is_asked: ContextVar[bool] = ContextVar("is_asked", default=False)

    async def init_producer(self: TransactionCoordinator, *arguments: Any) -> Any:
        is_asked.set(True)
        try:
            return await real(self, *arguments)
        finally:
            is_asked.set(False)

    def durable(self: Journal) -> Any:
        return asyncio.sleep(0) if is_asked.get() else really_durable(self)

    with (
        replaced(TransactionCoordinator, "init_producer", init_producer),
        replaced(Journal, "durable", durable),
    ):
        yield


@mutant
def trust_drafts() -> Iterator[Any]:
    """I9: drafts are not checked when they are read for a copy."""

    def payload(self: reverse_list.ReverseWalk, entry: Entry) -> memoryview:
        segment = self._segments.holding(entry.position)
        return memoryview(self._read(segment, entry.position, entry.length))[HEADER_BYTES:]

    with (
        replaced(reverse_list.ReverseWalk, "payload", payload),
        replaced(reverse_list.ReverseWalk, "_sound", payload),
    ):
        yield


@mutant
def forget_what_is_finished_early() -> Iterator[Any]:
    """Participants forget how a transaction ended before the coordinator has its end durably."""
    real = FinishedNumbers.of
    with replaced(FinishedNumbers, "of", lambda self, producer_id: real(self, producer_id) + 1):
        yield


# -- shards that are led anew --------------------------------------------------------------------------------


@mutant
def forget_what_was_missed() -> Iterator[Any]:
    """Participants that are led again are not told which commits to apply."""
    with replaced(Reunion, "missed", lambda self: []):
        yield


@mutant
def tell_what_was_missed_in_any_order() -> Iterator[Any]:
    """G0: participants that are led again are told of commits in another order than the others were."""

    def newest_first(rows: Sequence[Any]) -> list[Any]:
        return [action for _, _, action in sorted(rows, key=lambda row: -row[1])]

    with replaced(shards, "by_rank", newest_first):
        yield


@mutant
def forget_who_is_open() -> Iterator[Any]:
    """Participants that are led again are not told which transactions are open."""
    real = Reunion._tell_of

    def tell_of(self: Reunion, transaction: Any) -> None:
        if transaction.state is not TransactionState.ONGOING:
            real(self, transaction)

    with replaced(Reunion, "_tell_of", tell_of):
        yield


@mutant
def discard_what_others_may_know() -> Iterator[Any]:
    """Drafts that no coordinator knows are discarded, although some coordinators are missing."""
    with replaced(shards.Shards, "are_all_led", property(lambda self: True)):
        yield


@mutant
def write_after_another_leads() -> Iterator[Any]:
    """A deposed coordinator goes on with what it has begun."""
    with replaced(TransactionCoordinator, "depose", lambda self: None):
        yield
