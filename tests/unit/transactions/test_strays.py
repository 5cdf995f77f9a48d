"""After a crash no draft is left that nobody will ever end.

Found by the simulation: a crash can take the ADD of a partition, but leave a draft there and the BEGIN of its
transaction. The draft stayed open for ever: its journal was never reclaimed, a group's offsets never stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.copier.fold import Branch, Standing
from faircopy.journal.entry import Kind, TransactionId
from faircopy.partition.participant import Promise
from faircopy.partition.partition import Partition
from faircopy.storage.clock import SteadyClock, SystemClock
from faircopy.transactions import decisions
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.settlement import settle
from faircopy.transactions.survival import Survival
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry
from tests.unit.transactions.names import participant

OPEN = TransactionId(1, 0, 5)


class StubJournal:
    """Everything is durable at once."""

    def when_durable_without_sync(self, callback: Callable[[], None]) -> None:
        callback()

    when_kept = when_durable_without_sync


class StubHome:
    """A metadata journal, of which only the table is looked at."""

    def __init__(self) -> None:
        self.table, self.journal, self.finished_numbers = TransactionTable(), StubJournal(), FinishedNumbers()
        self._position = 0

    def append(self, entry: Any) -> None:
        self.table.fold(entry, self._position)
        self._position += 64

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        callback()


class StubPartition:
    """A partition with one open transaction."""

    failure = None

    def __init__(self, number: int) -> None:
        self.id = participant(number)
        self.acks_drafts_durably = False
        self.state = self
        self.journal = SimpleNamespace(leader_epoch=1)
        self.resumed: list[TransactionId] = []
        self.undecided = {OPEN: Branch(Standing.OPEN, head=0, first=0, drafts=1)}

    def resume_transaction(
        self, transaction: TransactionId, _transactional_id: str, *, is_durable: bool
    ) -> None:
        self.resumed.append(transaction)

    def close_transaction(self, transaction: TransactionId) -> None:
        pass

    def promise_of(self, _transaction: TransactionId) -> Promise:
        return Promise.NOT_GIVEN

    def discard(
        self, transaction: TransactionId, _fence: int, _finished: int, _done: Callable[[], None]
    ) -> None:
        """The decision is folded, and not durable yet."""
        self.undecided.pop(transaction)

    def forget_producers(self, producer_ids: Iterable[int]) -> None:
        assert not set(producer_ids)


@pytest.mark.parametrize("survival", Survival)
def test_a_partition_whose_add_was_lost(survival: Survival) -> None:
    """If its transaction goes on, it is added again; otherwise its drafts are discarded."""
    home, listed, lost = StubHome(), StubPartition(0), StubPartition(1)
    home.append(decisions.fence("a", 1, 0, 1_000, 0))
    home.append(NewEntry(Kind.BEGIN, OPEN, {"id": "a", "timeout_ms": 1_000, "at_ms": 0}))
    home.append(decisions.added(OPEN, {listed.id: 1}))
    found = {partition.id: partition for partition in (listed, lost)}
    coordinator = TransactionCoordinator(
        {0: cast(MetadataJournal, home)}, lambda _id: 0, cast(Any, found.get), cast(Any, None), 1, Numbers(1),
        SteadyClock(SystemClock()), cast(Any, None),
        CoordinatorOptions(1_000, 1_000), ProducerConnections(),
    )  # fmt: skip
    partitions = [cast(Partition, listed), cast(Partition, lost)]
    settle([coordinator], partitions, survival)
    if survival.is_loss:
        assert not lost.undecided and not listed.undecided
        return
    assert listed.resumed == lost.resumed == [OPEN]
    assert home.table.transactions[OPEN].participants == [listed.id, lost.id]
