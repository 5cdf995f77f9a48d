"""A deposed coordinator decides nothing and writes nothing. Who waits for it is told to ask another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from faircopy.copier.fold import NO_RANK, ApplyOrder
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.participant import Done, Promise
from faircopy.storage.clock import SteadyClock, SystemClock
from faircopy.transactions import decisions
from faircopy.transactions.connections import ProducerConnections, Sent
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.finished import NOTHING_FINISHED
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.producers import UNTOUCHED
from faircopy.transactions.survival import Survival
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry
from faircopy.wire.error_codes import ErrorCode
from tests.unit.idle import idle
from tests.unit.transactions.names import participants

OPEN = TransactionId(1, 0, 5)
SENT = Sent(1, 1, "a")


class StubHome:
    """A metadata journal in which all is durable at once. `appended` are the kinds of its entries."""

    def __init__(self) -> None:
        self.table, self.journal = TransactionTable(), self
        self.appended: list[Kind] = []
        self.append(decisions.fence("a", 1, 0, 1_000, 0))
        self.append(NewEntry(Kind.BEGIN, OPEN, {"id": "a", "timeout_ms": 1_000, "at_ms": 0}))
        self.append(NewEntry(Kind.ADD, OPEN, {"partitions": [[*participants(0)[0], 1]]}))

    def append(self, entry: NewEntry) -> None:
        self.appended.append(entry.kind)
        self.table.fold(entry, 64 * len(self.appended))

    def when_durable(self, callback: Callable[[], None]) -> None:
        callback()

    when_durable_without_sync = when_kept = when_durable

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        callback()

    async def safe(self, *, is_durable: bool) -> None:
        pass


class SlowParticipant:
    """One that answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Done] = []

    def ensure_writable(self) -> None:
        pass

    def close_transaction(self, _transaction: TransactionId) -> None:
        pass

    def prepare(self, _transaction: TransactionId, _finished: int, done: Done) -> None:
        self.waiting.append(done)

    def apply(self, _transaction: TransactionId, _order: ApplyOrder, done: Done) -> None:
        self.waiting.append(done)

    def discard(self, _transaction: TransactionId, _fence_epoch: int, _finished: int, done: Done) -> None:
        self.waiting.append(done)

    def promise_of(self, _transaction: TransactionId) -> Promise:
        return Promise.HELD

    def rank_of(self, _transaction: TransactionId) -> int:
        return NO_RANK

    def answer(self) -> None:
        """Answer what was asked by now."""
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done()


def coordinator_of(home: StubHome, participant: SlowParticipant) -> TransactionCoordinator:
    def find(_partition: TopicIdPartition) -> Any:
        return participant

    return TransactionCoordinator(
        {0: cast(MetadataJournal, home)}, lambda _id: 0, find, cast(Any, None), 1, Numbers(1),
        SteadyClock(SystemClock()), asyncio.get_running_loop(), CoordinatorOptions(1_000, 1_000),
        ProducerConnections(),
    )  # fmt: skip


async def end(coordinator: TransactionCoordinator, *, commit: bool) -> None:
    await coordinator.end("a", 1, 0, commit=commit, sent=SENT, fenced=ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("answers", range(3))
def test_a_commit_on_its_way_is_left_to_the_next(answers: int) -> None:
    """It is deposed after so many answers: before the promise, before the apply, or when all is over."""

    async def test() -> None:
        home, participant = StubHome(), SlowParticipant()
        coordinator = coordinator_of(home, participant)
        ending = asyncio.ensure_future(end(coordinator, commit=True))
        for _ in range(answers):
            await idle()
            participant.answer()
        await idle()
        coordinator.depose()
        before = list(home.appended)
        participant.answer()
        await idle()
        participant.answer()
        assert home.appended == before
        assert (Kind.COMMITTED in before) is (answers == 2)
        if answers:
            await ending
        else:
            with pytest.raises(TransactionRefused) as caught:
                await ending
            assert caught.value.code is ErrorCode.NOT_COORDINATOR

    asyncio.run(test())


def test_an_abort_on_its_way_is_left_to_the_next() -> None:
    async def test() -> None:
        home, participant = StubHome(), SlowParticipant()
        coordinator = coordinator_of(home, participant)
        await end(coordinator, commit=False)
        coordinator.depose()
        participant.answer()
        assert home.appended[-1] is Kind.PREPARE_ABORT

    asyncio.run(test())


def test_ids_that_expire_then_are_left_to_the_next() -> None:
    async def test() -> None:
        home, participant = StubHome(), SlowParticipant()
        coordinator = coordinator_of(home, participant)
        await end(coordinator, commit=False)
        participant.answer()
        forgetting = asyncio.ensure_future(coordinator.forget_idle())
        await coordinator.finish()
        coordinator.depose()
        assert await forgetting == set()
        assert home.appended[-1] is Kind.ABORTED

    asyncio.run(test())


def test_who_comes_is_sent_to_the_next() -> None:
    async def test() -> None:
        coordinator = coordinator_of(StubHome(), SlowParticipant())
        await coordinator.finish()
        coordinator.depose()
        for asked in (end(coordinator, commit=True), coordinator.init_producer("a", 1_000, -1, -1, 1)):
            with pytest.raises(TransactionRefused) as caught:
                await asked
            assert caught.value.code is ErrorCode.NOT_COORDINATOR
        assert coordinator.refusal_of_draft("a", 1, 0) is ErrorCode.NOT_ENOUGH_REPLICAS

    asyncio.run(test())


@pytest.mark.parametrize("is_asleep", [False, True])
def test_the_next_answers_no_abort_that_it_cannot_know_of(*, is_asleep: bool) -> None:
    """Its predecessor may have refused a BEGIN: "aborted" could be a lie, and INVALID_TXN_STATE is fatal."""

    async def test() -> None:
        home, participant = StubHome(), SlowParticipant()
        coordinator = coordinator_of(home, participant)
        ending = asyncio.ensure_future(end(coordinator, commit=True))
        while not ending.done() or home.table.transactions:
            await asyncio.sleep(0)
            participant.answer()
        coordinator.depose()
        successor = coordinator_of(home, participant)
        if is_asleep:
            home.table.producers.sleep(undurable=(), flags=UNTOUCHED)
        assert successor.settle(Survival.EVERYTHING) == []
        assert bool(home.table.producers.awake) is not is_asleep
        with pytest.raises(TransactionRefused) as caught:
            await end(successor, commit=False)
        assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    asyncio.run(test())


def test_the_next_knows_what_is_over_of_a_producer_that_has_slept() -> None:
    """So it can tell partitions, once the producer goes on, what they may forget."""

    async def test() -> None:
        home, participant = StubHome(), SlowParticipant()
        coordinator = coordinator_of(home, participant)
        ending = asyncio.ensure_future(end(coordinator, commit=True))
        while not ending.done() or home.table.transactions:
            await asyncio.sleep(0)
            participant.answer()
        home.table.producers.sleep(undurable=())
        assert coordinator._finished.of(1) == NOTHING_FINISHED, "nothing is kept, and nobody asks"
        home.append(decisions.fence("a", 1, 1, 1_000, 0))
        assert coordinator._finished.of(1) == OPEN.number

    asyncio.run(test())
