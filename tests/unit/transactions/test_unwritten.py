"""An acked draft is never of a transaction that a crash of the process forgets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.journal.entry import TransactionId
from faircopy.journal.group_commit import release
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.watermarks import Watermarks
from faircopy.partition.participant import Participant
from faircopy.partition.partition import Partition
from faircopy.storage.clock import SteadyClock, SystemClock
from faircopy.transactions import decisions
from faircopy.transactions.connections import ProducerConnections, Sent
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.table import TransactionTable
from faircopy.wire.error_codes import ErrorCode
from tests.unit.transactions.names import participant

Waiter = tuple[int, Callable[[], None]]


class StubJournal:
    """A journal that writes when it is told to."""

    def __init__(self) -> None:
        self.watermarks = Watermarks(is_synced_first=True)
        self._for_writes: deque[Waiter] = deque()
        self._for_syncs: deque[Waiter] = deque()

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        waiting = self._for_syncs if is_durable else self._for_writes
        waiting.append((self.watermarks.appended, callback))

    def write(self, up_to: int | None = None) -> None:
        self.watermarks.note_written(self.watermarks.appended if up_to is None else up_to)
        release(self._for_writes, self.watermarks.written)

    def sync(self) -> None:
        self.watermarks.note_synced(self.watermarks.written)
        release(self._for_syncs, self.watermarks.synced)


class StubHome:
    """A metadata journal with such a journal."""

    def __init__(self) -> None:
        self.journal, self.table = StubJournal(), TransactionTable()
        self.is_full = False

    def ensure_space(self) -> None:
        if self.is_full:
            raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space is left")

    def append(self, entry: Any) -> None:
        self.table.fold(entry, self.journal.watermarks.appended)
        self.journal.watermarks.appended += 64

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        self.journal.when_safe(callback, is_durable=is_durable)

    async def safe(self, *, is_durable: bool) -> None:
        done = asyncio.get_running_loop().create_future()
        self.when_safe(lambda: done.set_result(None), is_durable=is_durable)
        await done


class StubPartition:
    """A partition that remembers which transaction it was told."""

    def __init__(self, number: int, *, is_durable: bool = False) -> None:
        self.id = participant(number)
        self.acks_drafts_durably = is_durable
        self.journal = SimpleNamespace(leader_epoch=1)
        self.told: TransactionId | None = None

    def open_transaction(
        self, transaction: TransactionId, _transactional_id: str, *, is_durable: bool
    ) -> None:
        self.told = transaction


def nowhere(partition: TopicIdPartition) -> Participant:
    """In the place of what finds partitions: these scenes ask for none."""
    raise AssertionError(f"{partition} is asked for")


Scene = Callable[[StubHome, TransactionCoordinator], Awaitable[None]]


def run(scene: Scene) -> Callable[[], None]:
    """Make a test of an async function that wants a coordinator, with one producer known."""

    async def play() -> None:
        home = StubHome()
        home.append(decisions.fence("a", 1, 0, 1_000, 0))
        home.journal.write()
        coordinator = TransactionCoordinator(
            {0: cast(MetadataJournal, home)}, lambda _id: 0, nowhere, cast(Any, None), 1, Numbers(1),
            SteadyClock(SystemClock()), asyncio.get_running_loop(), CoordinatorOptions(1_000, 1_000),
            ProducerConnections(),
        )  # fmt: skip
        await scene(home, coordinator)

    return lambda: asyncio.run(play())


async def add(coordinator: TransactionCoordinator, partition: StubPartition) -> asyncio.Task[None]:
    """Begin to add a partition; the task is done when the client would be told."""
    adding = asyncio.create_task(
        coordinator.add_partitions(
            "a", 1, 0, [cast(Partition, partition)], Sent(1, 1, ""), ErrorCode.PRODUCER_FENCED
        )
    )
    await asyncio.sleep(0)
    return adding


@run
async def test_a_draft_is_acked_when_its_transaction_is_written(
    home: StubHome, coordinator: TransactionCoordinator
) -> None:
    first, second = StubPartition(0), StubPartition(1)
    acked: list[str] = []

    def draft(partition: StubPartition, name: str) -> None:
        """A draft that is written to the partition's journal at once."""
        assert partition.told is not None
        coordinator.once_written(partition.told, lambda _base_offset: acked.append(name))(UNKNOWN_OFFSET)

    adding = [await add(coordinator, first)]
    begun = home.journal.watermarks.appended
    draft(first, "one")
    assert acked == []
    adding.append(await add(coordinator, second))
    home.journal.write(begun)
    assert acked == ["one"]
    draft(second, "two")
    assert acked == ["one"], "the second partition is not yet known to be of the transaction"
    home.journal.write()
    assert acked == ["one", "two"]
    draft(first, "three")
    assert acked == ["one", "two", "three"]
    await asyncio.gather(*adding)


@run
async def test_a_draft_that_is_to_survive_a_loss_of_power_waits_for_the_fsync(
    home: StubHome, coordinator: TransactionCoordinator
) -> None:
    durable, plain = StubPartition(0, is_durable=True), StubPartition(1)
    acked: list[str] = []

    def draft(partition: StubPartition, name: str) -> None:
        assert partition.told is not None
        coordinator.once_written(partition.told, lambda _base_offset: acked.append(name))(UNKNOWN_OFFSET)

    first = await add(coordinator, durable)
    draft(durable, "one")
    home.journal.write()
    await asyncio.sleep(0)
    assert acked == [] and not first.done()
    home.journal.sync()
    assert acked == ["one"]
    await first
    # If this ADD were lost, and the transaction went on, these drafts would be missing from its commit.
    second = await add(coordinator, plain)
    draft(plain, "two")
    home.journal.write()
    await asyncio.sleep(0)
    assert acked == ["one"] and not second.done()
    home.journal.sync()
    assert acked == ["one", "two"]
    await second


@run
async def test_a_partition_is_said_to_be_added_when_that_is_written(
    home: StubHome, coordinator: TransactionCoordinator
) -> None:
    """Found by the soak: a client went on after a kill -9, and committed the rest of what that had taken."""
    adding = await add(coordinator, StubPartition(0))
    assert not adding.done()
    home.journal.write()
    await adding


@run
async def test_nothing_begins_on_a_full_disk(home: StubHome, coordinator: TransactionCoordinator) -> None:
    home.is_full = True
    with pytest.raises(TransactionRefused) as refused:
        await (await add(coordinator, StubPartition(0)))
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert home.table.transactions == {}
