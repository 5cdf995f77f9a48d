"""After a crash no draft is left that nobody will ever end.

Found by the simulation: a crash can take the ADD of a partition, but leave a draft there and the BEGIN of its
transaction. The draft stayed open for ever: its journal was never reclaimed, a group's offsets never stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest

from faircopy.copier.fold import Branch, Standing
from faircopy.journal.entry import Kind, TransactionId
from faircopy.partition.partition import Partition
from faircopy.storage.clock import SteadyClock, SystemClock
from faircopy.transactions import decisions
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.coordinator import CoordinatorOptions, TransactionCoordinator
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.settlement import settle
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry
from tests.unit.transactions.names import participant, participants

OPEN = TransactionId(1, 0, 5)


class StubJournal:
    """Everything is durable at once."""

    def when_durable_without_sync(self, callback: Callable[[], None]) -> None:
        callback()


class StubHome:
    """A metadata journal, of which only the table is looked at."""

    def __init__(self) -> None:
        self.table, self.journal, self.finished_numbers = TransactionTable(), StubJournal(), FinishedNumbers()
        self._position = 0

    def append(self, entry: Any) -> None:
        self.table.fold(entry, self._position)
        self._position += 64


class StubPartition:
    """A partition with one open transaction."""

    failure = None

    def __init__(self, number: int) -> None:
        self.id = participant(number)
        self.state = self
        self.transactions = {OPEN: Branch(Standing.OPEN, head=0, first=0, drafts=1)}

    def open_transaction(self, transaction: TransactionId, _transactional_id: str) -> None:
        pass

    def discard(
        self, transaction: TransactionId, _fence: int, _finished: int, _done: Callable[[], None]
    ) -> None:
        """The decision is folded, and not durable yet."""
        self.transactions.pop(transaction)

    def forget_producers(self, producer_ids: Iterable[int]) -> None:
        assert not set(producer_ids)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_partition_whose_add_was_lost_forgets_its_drafts(is_clean: bool) -> None:
    home, listed, lost = StubHome(), StubPartition(0), StubPartition(1)
    home.append(decisions.fence("a", 1, 0, 1_000, 0))
    home.append(NewEntry(Kind.BEGIN, OPEN, {"id": "a", "timeout_ms": 1_000, "at_ms": 0}))
    home.append(NewEntry(Kind.ADD, OPEN, {"partitions": [[*participants(0)[0], 1]]}))
    found = {partition.id: partition for partition in (listed, lost)}
    coordinator = TransactionCoordinator(
        {0: cast(MetadataJournal, home)}, lambda _id: 0, cast(Any, found.get), cast(Any, None), 1, Numbers(1),
        SteadyClock(SystemClock()), cast(Any, None),
        CoordinatorOptions(1_000, 1_000), ProducerConnections(),
    )  # fmt: skip
    partitions = [cast(Partition, listed), cast(Partition, lost)]
    settle([coordinator], partitions, is_clean=is_clean, lost_power=not is_clean)
    assert not lost.transactions
    assert bool(listed.transactions) is is_clean
