"""Remote copy, the older double journaling: a transaction's messages wait in the journal of its coordinator.

The coordinator's table also notes which messages are for which partition. On commit, one write of one file
makes PREPARE_COMMIT and the messages durable. Then the ack goes out. Then the data is read back and sent to
the partitions' leaders, which append it like plain messages. Every message is journaled twice, and in a
cluster it would cross the network once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from faircopy.broker.broker import Broker
from faircopy.copier.producers import UNKNOWN_OFFSET
from faircopy.errors import invariant
from faircopy.journal.entry import Entry, Kind, TransactionId
from faircopy.journal.journal import Journal
from faircopy.journal.reverse_list import ReverseWalk, read_from_cache, read_from_disk
from faircopy.journal.segment import Segment
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import Done, Participant
from faircopy.partition.partition import Appended, Partition
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.file import NotCached
from faircopy.storage.system import Buffer
from faircopy.transactions.commits import Commit, Commits
from faircopy.transactions.connections import Sent
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.endings import Endings
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.transaction import BranchId, Transaction
from faircopy.wire.batch import BatchHeader
from faircopy.wire.error_codes import ErrorCode

INLINE_BYTES = 64 << 10


class Waiting(NamedTuple):
    """One batch in a coordinator's journal, and its destination."""

    partition: RemotePartition
    entry: Entry


class Stock:
    """The batches of one open transaction, in the order of their arrival."""

    def __init__(self, transaction: TransactionId, journal: Journal) -> None:
        self.transaction = transaction
        self.journal = journal
        self.first_position = journal.watermarks.appended
        self.batches: list[Waiting] = []
        self.size_bytes = 0

    def add(self, partition: RemotePartition, batch: Buffer, records: int) -> None:
        """Append a batch to the coordinator's journal."""
        entry = self.journal.append(
            Kind.DRAFT, batch, fold=lambda entry: entry, records=records, transaction=self.transaction
        )
        self.batches.append(Waiting(partition, entry))
        self.size_bytes += len(batch)


class RemotePartition(HostedPartition):
    """A partition that keeps no drafts: they go to their coordinator's journal."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._stocks: dict[TransactionId, Stock] = {}

    def take_part(self, stock: Stock) -> None:
        """Put drafts of this transaction into this stock from now on."""
        self._stocks[stock.transaction] = stock

    def leave(self, transaction: TransactionId) -> None:
        """The transaction is over: no more drafts."""
        self.close_transaction(transaction)
        self._stocks.pop(transaction, None)

    def append_draft(
        self,
        batch: Buffer,
        header: BatchHeader | None,
        records: int,
        transaction: TransactionId,
        done: Appended,
        *,
        may_begin: bool = False,
    ) -> None:
        """Append a batch to the coordinator's journal; calls `done(UNKNOWN_OFFSET)` when it is written."""
        assert header is not None
        stock = self._stocks[transaction]
        if self._producer(header, may_begin).find_duplicate(header, batch) is None:
            self.state._note(header, batch, UNKNOWN_OFFSET)
            stock.add(self, batch, records)
        stock.journal.when_kept(lambda: done(UNKNOWN_OFFSET))

    def append_sent(self, batch: Buffer, records: int, done: Done) -> None:
        """A batch of a committed transaction came from its coordinator; calls `done()` when it is durable."""
        # Its sequence was checked when it came from the producer.
        self.append_plain(batch, None, records, lambda _base_offset: done())


class RemoteCommits(Commits):
    """Sends the data when it is committed."""

    stocks: dict[TransactionId, Stock]
    disk: DiskPool

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sending: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def promising(self, transaction: Transaction) -> list[BranchId]:
        return []

    def apply(self, commit: Commit) -> None:
        task = self._loop.create_task(self._send(commit))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, commit: Commit) -> None:
        """Send a transaction's data to its partitions, after those of its group that were decided before."""
        transaction = commit.transaction
        stock = self.stocks[transaction.id]
        leave(map(self._find_participant, transaction.participants), transaction.id)
        waiting = len(stock.batches)

        def one_has_copied() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self.over(commit)

        async with self._sending.setdefault(transaction.transactional_id, asyncio.Lock()):
            payloads = await self._read(stock)
            for (partition, entry), payload in zip(stock.batches, payloads, strict=True):
                partition.append_sent(payload, entry.records, one_has_copied)
        del self.stocks[transaction.id]
        if not stock.batches:
            self.over(commit)

    async def _read(self, stock: Stock) -> list[memoryview]:
        if stock.size_bytes <= INLINE_BYTES:
            try:
                walk = ReverseWalk(stock.journal, stock.transaction, read_from_cache)
                return [walk.payload(waiting.entry) for waiting in stock.batches]
            except NotCached:
                pass
        walk = ReverseWalk(stock.journal, stock.transaction, read_from_disk)
        return await self.disk.run(lambda: [walk.payload(waiting.entry) for waiting in stock.batches])


class RemoteEndings(Endings):
    """Drops the data when it is aborted."""

    stocks: dict[TransactionId, Stock]

    def discard(self, home: MetadataJournal, transaction: Transaction) -> None:
        leave(map(self._find_participant, transaction.participants), transaction.id)
        self.stocks.pop(transaction.id, None)
        self._end(home, transaction, Kind.ABORTED)


def leave(participants: Iterable[Participant], transaction: TransactionId) -> None:
    """The transaction is over: no more drafts."""
    for partition in participants:
        invariant(isinstance(partition, RemotePartition), "offsets in transactions are not compared")
        assert isinstance(partition, RemotePartition)
        partition.leave(transaction)


class RemoteCoordinator(TransactionCoordinator):
    """A coordinator that takes the drafts of partitions into its own journals."""

    commits_type = RemoteCommits
    endings_type = RemoteEndings
    _commits: RemoteCommits
    _endings: RemoteEndings

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._stocks: dict[TransactionId, Stock] = {}
        self._commits.stocks = self._endings.stocks = self._stocks
        self._commits.disk = self.journals[0]._disk
        for home in self.journals:
            self._keep_stocks(home.journal)

    def _keep_stocks(self, journal: Journal) -> None:
        """Keep checkpoints of the table from giving back the space of batches that are not sent yet."""
        reclaim = journal.reclaim

        def reclaim_less(below: int) -> list[Segment]:
            firsts = (stock.first_position for stock in self._stocks.values() if stock.journal is journal)
            return reclaim(min(firsts, default=below))

        journal.reclaim = reclaim_less  # type: ignore[method-assign]

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        partitions = list(partitions)
        await super().add_partitions(transactional_id, producer_id, epoch, partitions, sent, fenced)
        home = self.journal_of(transactional_id)
        current = home.table.producers[transactional_id].current
        assert current is not None
        stock = self._stocks.get(current.id)
        if stock is None:
            stock = self._stocks[current.id] = Stock(current.id, home.journal)
        for partition in partitions:
            if isinstance(partition, RemotePartition):
                partition.take_part(stock)


class RemoteCopyBroker(Broker):
    """A broker whose metadata journals hold the messages of open transactions."""

    partition_type = RemotePartition
    coordinator_type = RemoteCoordinator
