"""Mutants of what foreign suites and hostile use have found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from faircopy.copier import checkpoint, fold
from faircopy.copier.log_copier import LogCopier
from faircopy.copier.producers import ProducerState
from faircopy.journal import reverse_list
from faircopy.journal.entry import HEADER_BYTES, Entry
from faircopy.journal.journal import Journal
from faircopy.journal.opening import Opening
from faircopy.partition import checkpointing, partition
from faircopy.storage.clock import SteadyClock, SteadyNote
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.state_store import Put
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from tests.mutants.registry import mutant, replaced


@mutant
def age_by_the_wall_clock() -> Iterator[Any]:
    """Ages follow the wall clock, which may jump."""
    with replaced(SteadyClock, "steady_ms", SteadyClock.wall_ms):
        yield


@mutant
def count_the_uptime_of_another_machine() -> Iterator[Any]:
    """After a boot, the time since then counts, though the directory may come from another machine."""
    real = SteadyClock._first_ms

    def first_ms(self: SteadyClock, noted: SteadyNote | None) -> int:
        is_elsewhere = noted is not None and noted.boot_id != self._boot_id
        return real(self, noted) + (self._machine.uptime_ms() if is_elsewhere else 0)

    with replaced(SteadyClock, "_first_ms", first_ms):
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
    real = checkpoint._producer_change

    def producer_change(*arguments: Any) -> Any:
        change = real(*arguments)
        return change._replace(value=b"\0\0" + change.value[2:]) if isinstance(change, Put) else change

    with replaced(checkpoint, "_producer_change", producer_change):
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

    def ensure_leads(_journal: Journal, _opening: Opening) -> None:
        pass

    with replaced(Journal, "ensure_leads", ensure_leads):
        yield


@mutant
def ack_a_repeated_plain_batch_at_once() -> Iterator[Any]:
    """P2: a batch that is sent again is acknowledged before the first one is durable."""
    real = partition.Partition.append_plain

    def append_plain(
        self: partition.Partition,
        batch: Any,
        header: Any,
        records: int,
        done: Any,
        *,
        may_begin: bool = False,
    ) -> None:
        seen = (
            self._producer(header, may_begin).find_duplicate(header, batch)
            if header is not None and header.producer_id >= 0
            else None
        )
        if seen is not None:
            done(seen.base_offset)
        else:
            real(self, batch, header, records, done, may_begin=may_begin)

    with replaced(partition.Partition, "append_plain", append_plain):
        yield


@mutant
def ack_a_repeated_commit_at_once() -> Iterator[Any]:
    """I5: an EndTxn that is sent again is answered before the first one's commit is durable."""

    async def repeated_ack(self: TransactionCoordinator, home: Any, producer: Any) -> None:
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
