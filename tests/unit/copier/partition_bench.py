"""A partition on real files, opened and reopened, for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

from faircopy.copier.fold import ApplyOrder
from faircopy.datalog.read import read_batches, read_from_disk
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.recent import RecentDrafts
from faircopy.partition import partition
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import PartitionResources, Unopened, assemble, recover
from faircopy.storage.state_store import StateStore
from faircopy.wire.batch import check_produced, read_header
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.unit.idle import CountedPool, idle

PARTITION = TopicIdPartition(b"p" * 16, 0)
IDENTITY = PARTITION.identity


class PartitionBench:
    """One data directory with one partition; `restart` is what a kill -9 and a new process do.

    Each process leads under an epoch of its own.
    """

    def __init__(
        self,
        path: Path,
        *,
        log_segment_bytes: int = 1 << 14,
        durability: Durability = Durability.FSYNC,
        recent_bytes: int = 0,
    ) -> None:
        self.path = path
        self.loop = asyncio.get_running_loop()
        self.log_segment_bytes = log_segment_bytes
        self.durability = durability
        self.recent_bytes = recent_bytes
        self.failures: list[BaseException] = []
        self.damages: list[FaircopyError] = []
        self._salt = 0
        self.leader_epoch = 0
        self.open()

    def open(self) -> None:
        self.disk = CountedPool(self.loop, threads=2)
        self.store = StateStore(self.path / "state", self.loop)
        recent = RecentDrafts(self.recent_bytes)
        options = JournalOptions(self.durability, 1 << 20, self._new_salt, self.failures.append, recent)
        self.leader_epoch += 1
        self.resources = PartitionResources(
            self.store, self.disk, self.loop, lambda: 0, options, HostedPartition, self._note_damage
        )
        self.partition = assemble(self.unopened(), self.resources)
        self.journal, self.log, self.copier = (
            self.partition.journal,
            self.partition.log,
            self.partition.copier,
        )
        recover(self.partition)

    def unopened(self) -> Unopened:
        """The partition, to be opened under the epoch of this process."""
        journal, log = self.path / "journal", self.path / "log"
        return Unopened(
            PartitionName("t", 0), PARTITION, journal, log, self.log_segment_bytes, self.leader_epoch
        )

    def _note_damage(self, _partition: HostedPartition, error: FaircopyError) -> None:
        self.damages.append(error)

    def _new_salt(self) -> int:
        self._salt += 1
        return self._salt

    def close(self) -> None:
        self.disk.close()
        self.store.close()

    def restart(self) -> None:
        self.close()
        self.open()

    # -- asking the partition --------------------------------------------------------------------------------

    async def plain(self, *values: bytes, **header: Any) -> int:
        """Append a plain batch; return its base offset when it is acked."""
        batch = memoryview(build_batch([NewRecord(value) for value in values], **header))
        done: asyncio.Future[int] = self.loop.create_future()
        self.partition.append_plain(batch, check_produced(batch), len(values), done.set_result)
        return await done

    async def draft(self, transaction: TransactionId, sequence: int, *values: bytes) -> int:
        """Append a draft; return the offset that it is expected to get, when it is acked."""
        done: asyncio.Future[int] = self.loop.create_future()
        batch = memoryview(
            build_batch(
                [NewRecord(value) for value in values],
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )
        self.partition.append_draft(batch, check_produced(batch), len(values), transaction, done.set_result)
        return await done

    async def done(self, ask: Callable[[Callable[[], None]], None]) -> None:
        """Ask for something that calls back, and wait until it does."""
        future: asyncio.Future[None] = self.loop.create_future()
        ask(lambda: future.set_result(None))
        await future

    async def prepare(self, transaction: TransactionId) -> None:
        await self.done(lambda done: self.partition.prepare(transaction, -1, done))

    async def apply(self, transaction: TransactionId, finished: int = -1, rank: int = 0) -> None:
        order = ApplyOrder(finished, rank, transaction)
        await self.done(lambda done: self.partition.apply(transaction, order, done))

    async def discard(self, transaction: TransactionId, finished: int = -1) -> None:
        await self.done(
            lambda done: self.partition.discard(transaction, transaction.producer_epoch, finished, done)
        )

    async def idle(self) -> None:
        """Wait until nothing more happens by itself."""
        await idle(self.disk)

    async def let_go(self) -> None:
        """Wait until nothing uses the files, by turns of the loop instead of by time."""
        with mock.patch.object(partition, "LET_GO_POLL_SECONDS", 0):
            await self.partition.let_go()

    async def visible(self) -> list[bytes]:
        """Return all values in the log, once all that is durable is visible.

        Checks that offsets are contiguous (P3), and that each batch bears the leader epoch of the fold.
        """
        while self.log.end_offset < self.partition.state.next_offset:
            await asyncio.sleep(0)
        values: list[bytes] = []
        offset = self.log.start_offset
        while (plan := self.log.plan_read(offset)) is not None:
            data = read_batches(plan, 1, read_from_disk)
            header = read_header(data)
            assert header.base_offset == offset
            assert header.leader_epoch == self.partition.epochs.epoch_at(offset)
            values += [record.value or b"" for record in decode_records(data)]
            offset = header.last_offset + 1
        return values


def run(path: Path, test: Callable[[PartitionBench], Awaitable[Any]], **options: Any) -> None:
    """Run a test with a fresh loop and partition."""

    async def main() -> None:
        bench = PartitionBench(path, **options)
        try:
            await test(bench)
            assert not bench.failures
        finally:
            bench.close()

    asyncio.run(main())
