"""A partition of a topic, with its visible log."""

from __future__ import annotations

from faircopy.copier.log_copier import LogCopier
from faircopy.errors import FaircopyError
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.partition.name import PartitionName
from faircopy.partition.partition import Partition
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore


class HostedPartition(Partition):
    """A partition of a topic. Its `log` is for all readers (P1, P3, P4); its `copier` writes that log."""

    def __init__(
        self,
        name: PartitionName,
        partition_id: TopicIdPartition,
        journal: Journal,
        copier: LogCopier,
        store: StateStore,
        disk: DiskPool,
    ) -> None:
        super().__init__(name, partition_id, journal, copier, store, disk)
        self._store = store
        self._disk = disk
        self.copier = copier
        self.log = copier.log

    def abandon(self, error: FaircopyError) -> None:
        self.copier.abandon()
        super().abandon(error)

    def stop_serving(self) -> None:
        super().stop_serving()
        self.log.notify()  # so that clients that wait for messages look for another leader

    @property
    def is_at_work(self) -> bool:
        return super().is_at_work or self.copier.is_at_work

    async def delete_files(self) -> None:
        """Delete the segments of journal and log. Call it after `abandon`. Raises StorageFailure."""
        await self.let_go()
        for segment in self.journal.reclaim_all():
            await self._disk.run(segment.discard)
        for log_segment in self.log.segments:
            await self._disk.run(log_segment.discard)
