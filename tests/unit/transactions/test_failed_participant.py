"""A partition that can't be recovered now keeps what it has, and what only it knows is not guessed.

Found by the soak: after a kill -9, on a full disk, partitions could not be recovered. The coordinator
discarded drafts in them all the same, and so wrote over the first entries of their journals, whose ends it
did not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from faircopy.copier.fold import NO_RANK, ApplyOrder, Branch, Standing
from faircopy.errors import FaircopyError
from faircopy.journal.entry import Kind, TransactionId
from faircopy.partition.name import PartitionName
from faircopy.partition.participant import Promise
from faircopy.partition.partition import PROMISES, Partition
from faircopy.partition.partition import participant as participant_in
from faircopy.storage.clock import SteadyClock, SystemClock
from faircopy.transactions import decisions
from faircopy.transactions.connections import ProducerConnections, Sent
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.settlement import settle
from faircopy.transactions.survival import Survival
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry
from faircopy.wire.error_codes import ErrorCode
from tests.unit.transactions.names import participant, participants

FIRST, SECOND = TransactionId(1, 0, 5), TransactionId(2, 0, 6)
IDS = {FIRST: "g/1", SECOND: "g/2"}
RANK = 7


class StubJournal:
    def when_kept(self, callback: Callable[[], None]) -> None:
        callback()

    when_durable = when_kept

    def when_durable_without_sync(self, callback: Callable[[], None]) -> None:
        callback()


class StubHome:
    """Two transactions of a group were decided, one after the other, over both partitions, or as told."""

    def __init__(self, first: tuple[int, ...] = (0, 1), second: tuple[int, ...] = (0, 1)) -> None:
        self.table, self.journal = TransactionTable(), StubJournal()
        self._position = 0
        for (txid, transactional_id), partitions in zip(IDS.items(), (first, second), strict=True):
            self.append(decisions.fence(transactional_id, txid.producer_id, 0, 1_000, 0))
            self.append(NewEntry(Kind.BEGIN, txid, {"id": transactional_id, "timeout_ms": 1_000, "at_ms": 0}))
            self.append(NewEntry(Kind.PREPARE_COMMIT, txid, {"partitions": participants(*partitions)}))

    def append(self, entry: Any) -> None:
        self.table.fold(entry, self._position)
        self._position += 64

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        callback()


class StubPartition:
    def __init__(
        self, number: int, standings: dict[TransactionId, Standing], failure: Exception | None = None
    ) -> None:
        self.id, self.name = participant(number), PartitionName("t", number)
        self.state = self
        self.transactions = {
            txid: Branch(standing, head=0, first=0, drafts=1) for txid, standing in standings.items()
        }
        self.undecided = {txid: each for txid, each in self.transactions.items() if each.is_undecided}
        self.failure = failure
        self.decisions: list[tuple[str, TransactionId]] = []
        self.ranks: list[int] = []

    def standing(self, transaction: TransactionId) -> Standing | None:
        known = self.transactions.get(transaction)
        return known.standing if known is not None else None

    def promise_of(self, transaction: TransactionId) -> Promise:
        return PROMISES.get(self.standing(transaction), Promise.NOT_GIVEN)

    def rank_of(self, transaction: TransactionId) -> int:
        return RANK if self.standing(transaction) is Standing.APPLIED else NO_RANK

    def close_transaction(self, _transaction: TransactionId) -> None:
        pass

    def prepare(self, transaction: TransactionId, _finished: int, done: Callable[[], None]) -> None:
        self.decisions.append(("prepare", transaction))
        done()

    def apply(self, transaction: TransactionId, order: ApplyOrder, done: Callable[[], None]) -> None:
        self.decisions.append(("apply", transaction))
        self.ranks.append(order.rank)
        done()

    def discard(
        self, transaction: TransactionId, _fence: int, _finished: int, done: Callable[[], None]
    ) -> None:
        self.decisions.append(("discard", transaction))
        done()


def recovered(
    home: StubHome, *partitions: StubPartition, survival: Survival = Survival.WRITTEN
) -> TransactionCoordinator:
    found = {partition.id: participant_in(cast(Partition, partition)) for partition in partitions}
    coordinator = TransactionCoordinator(
        {0: cast(MetadataJournal, home)}, lambda _id: 0, found.__getitem__, cast(Any, None), 1, Numbers(1),
        SteadyClock(SystemClock()), cast(Any, None),
        CoordinatorOptions(1_000, 1_000), ProducerConnections(),
    )  # fmt: skip
    settle([coordinator], [cast(Partition, each) for each in partitions], survival)
    return coordinator


def prepared(*txids: TransactionId) -> dict[TransactionId, Standing]:
    return dict.fromkeys(txids, Standing.PREPARED)


def test_nothing_is_written_to_a_partition_that_has_failed() -> None:
    stray = TransactionId(9, 0, 1)
    failed = StubPartition(0, {stray: Standing.OPEN}, FaircopyError("no space is left"))
    sound = StubPartition(1, {stray: Standing.OPEN})
    recovered(StubHome(), failed, sound)
    assert failed.decisions == []
    assert ("discard", stray) in sound.decisions


def test_what_only_a_failed_partition_knows_is_not_guessed() -> None:
    """An ack may have been given. The group's later transactions wait too: its order is global (P5)."""
    home, sound = StubHome(), StubPartition(1, prepared(FIRST, SECOND))
    coordinator = recovered(home, StubPartition(0, prepared(SECOND), FaircopyError("damaged")), sound)
    assert sound.decisions == []
    assert list(home.table.transactions) == [FIRST, SECOND]
    with pytest.raises(TransactionRefused) as refused:
        asyncio.run(
            coordinator.end("g/1", 1, 0, commit=True, sent=Sent(1, 1, ""), fenced=ErrorCode.PRODUCER_FENCED),
        )
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_later_transaction_of_the_group_that_is_applied_proves_all_promises() -> None:
    """The loss of power took the APPLY of the first one, in another partition (P5). Its ack was given."""
    failed, first = StubPartition(0, {}, FaircopyError("damaged")), StubPartition(1, prepared(FIRST))
    second = StubPartition(2, {SECOND: Standing.APPLIED})
    recovered(StubHome((0, 1), (2,)), failed, first, second)
    assert first.decisions == [("apply", FIRST)]
    assert first.ranks == second.ranks == [RANK]


def test_a_failed_partition_that_has_promised_is_believed() -> None:
    sound = StubPartition(1, prepared(FIRST, SECOND))
    recovered(StubHome(), StubPartition(0, prepared(FIRST, SECOND), FaircopyError("damaged")), sound)
    assert sound.decisions == [("apply", FIRST), ("apply", SECOND)]


def test_a_sound_partition_that_lost_its_promise_means_that_no_ack_was_given() -> None:
    home, sound = StubHome(), StubPartition(1, prepared(SECOND))
    failed = StubPartition(0, prepared(SECOND), FaircopyError("damaged"))
    recovered(home, failed, sound, survival=Survival.SYNCED)
    assert sound.decisions == [("discard", FIRST), ("apply", SECOND)]
    assert home.table.producers["g/1"].must_abort
