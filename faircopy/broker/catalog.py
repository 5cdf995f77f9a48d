"""The topics and partitions that this broker serves: opening, making, changing and deleting them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from faircopy.broker.settings import Settings
from faircopy.cluster.topic_configs import CONFIGS, check_configs
from faircopy.cluster.topics import Topic, Topics, UnknownTopic
from faircopy.copier.checkpoint import delete_partition
from faircopy.copier.log_copier import LogCopier
from faircopy.copier.partition import Partition, PartitionName
from faircopy.datalog.log import DataLog, LogEnd
from faircopy.datalog.read import ReadPlan
from faircopy.errors import FaircopyError
from faircopy.journal.journal import Journal, JournalOptions
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.disk import Disk
from faircopy.storage.files import FileRange, NoSpace, WriteFailure, delete_tree, list_directory, make_directory
from faircopy.storage.state_store import StateStore
from faircopy.wire.fetch import AbortedTransaction

log = logging.getLogger(__name__)

PARTITIONS_MAX = 100_000


class TooManyPartitions(FaircopyError):
    """More partitions are asked for than one broker takes."""


class HostedPartition(Partition):
    """A partition of a topic, with its visible log. What is in the log is for all readers (P1, P3, P4)."""

    log: DataLog
    copier: LogCopier

    def abandon(self, error: FaircopyError) -> None:
        self.copier.abandon()
        super().abandon(error)

    @property
    def is_at_work(self) -> bool:
        return super().is_at_work or self.copier.is_at_work

    def end_for(self, _isolation_level: int) -> int:
        """The offset before which such a reader may read: the log's end, whatever is open."""
        return self.log.end_offset

    def plan_read(self, offset: int, _isolation_level: int) -> ReadPlan | None:
        """Where to read; None at the end for such a reader. Raises OffsetOutOfRange, DamagedLog."""
        return self.log.plan_read(offset)

    def aborted_in(self, _records: bytes | FileRange, _offset: int) -> Sequence[AbortedTransaction]:
        """The aborted transactions in what a read_committed reader at `offset` gets: none, ever."""
        return ()


class HostedTopic:
    """A topic and its partitions here; settings are read once, since Produce asks for them all the time."""

    def __init__(self, topic: Topic, settings: Settings) -> None:
        self.partitions: list[HostedPartition] = []
        self._settings = settings
        self.topic = topic
        self.change(topic)

    def change(self, topic: Topic) -> None:
        """Take over changed settings."""
        self.topic = topic
        self.max_message_bytes = int(self.config("max.message.bytes"))
        self.has_log_append_time = self.config("message.timestamp.type") == "LogAppendTime"
        self.retention_ms = int(self.config("retention.ms"))
        self.retention_bytes = int(self.config("retention.bytes"))
        for partition in self.partitions:
            partition.log.segment_bytes = int(self.config("segment.bytes"))

    def config(self, name: str) -> str:
        """The value of a setting: the topic's own, else the broker's default, else the built-in one."""
        if name in self.topic.configs:
            return self.topic.configs[name]
        default = broker_default(self._settings, name)
        return CONFIGS[name].default if default is None else default


def broker_default(settings: Settings, name: str) -> str | None:
    """The broker's default for a topic setting, if it has one."""
    for field in ("topic_" + name.replace(".", "_"), name.replace(".", "_")):
        if hasattr(settings, field):
            value = getattr(settings, field)
            return str(value).lower() if isinstance(value, bool) else str(value)
    return None


class Catalog:
    """All topics of this broker."""

    def __init__(
        self,
        topics: Topics,
        directory: DataDirectory,
        store: StateStore,
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        settings: Settings,
        journal_options: JournalOptions,
        partition_type: type[HostedPartition],
    ) -> None:
        self._partition_type = partition_type
        self._topics = topics
        self._directory = directory
        self._store = store
        self._disk = disk
        self._loop = loop
        self._settings = settings
        self._journal_options = journal_options
        self._changing = asyncio.Lock()
        self.topics: dict[str, HostedTopic] = {}
        self._partitions: dict[tuple[str, int], HostedPartition] = {}
        self.on_change: Callable[[HostedTopic, bool], None] = lambda _topic, _exists: None
        self.before_delete: Callable[[HostedTopic], Awaitable[None]] | None = None
        self.after_delete: Callable[[], Awaitable[None]] | None = None

    # -- looking up ----------------------------------------------------------------------------------------------

    def find(self, topic: str, partition: int) -> HostedPartition | None:
        """A partition, or None."""
        return self._partitions.get((topic, partition))

    def partitions(self) -> Iterator[HostedPartition]:
        """All partitions."""
        return iter(list(self._partitions.values()))

    # -- opening -------------------------------------------------------------------------------------------------

    def open_all(self) -> None:
        """Open and recover every partition. Blocks. A damaged one is marked so, and the others serve on.

        Raises NoSpace: a partition that lacks space to recover would stay stopped when there is some again.
        """
        for topic in self._topics.load():
            hosted = HostedTopic(topic, self._settings)
            self._host(hosted, [self._open(hosted, number) for number in range(topic.partitions)])

    def _host(self, hosted: HostedTopic, partitions: list[HostedPartition]) -> None:
        hosted.partitions.extend(partitions)
        self.topics[hosted.topic.name] = hosted
        for partition in partitions:
            self._partitions[partition.name] = partition
        self.on_change(hosted, True)

    def _open(self, hosted: HostedTopic, number: int) -> HostedPartition:
        """Open one partition of a topic; one that is damaged is stopped. Blocks. Raises NoSpace."""
        topic = hosted.topic
        identity = topic.identity(number)
        name = PartitionName(topic.name, number)
        journal_path, log_path = self._paths(topic, number)
        journal = Journal(journal_path, identity, self._disk, self._loop, self._journal_options)
        data_log = DataLog(log_path, identity, self._store, int(hosted.config("segment.bytes")))
        copier = LogCopier(
            journal, data_log, self._store, self._disk, self._loop, lambda error: self.stop(partition, error)
        )
        partition = self._partition_type(name, identity, journal, copier, self._store, self._disk)
        partition.log, partition.copier = data_log, copier
        try:
            self._recover(partition)
        except NoSpace:
            raise
        except (FaircopyError, OSError) as error:
            self.stop(partition, error if isinstance(error, FaircopyError) else FaircopyError(str(error)))
        return partition

    def _recover(self, partition: HostedPartition) -> None:
        self._store.ensure_sound(partition.identity)
        checkpoint = partition.load()
        if checkpoint is None:
            partition.log.open(None, 0, 0)
        else:
            base = checkpoint.log_segment_base
            end = LogEnd(base, checkpoint.log_byte) if base is not None else None
            partition.log.open(end, checkpoint.start_offset, checkpoint.next_offset, checkpoint.greatest_time_ms)
        partition.recover()

    def stop(self, partition: HostedPartition, error: FaircopyError) -> None:
        """Serve nothing more of a partition that is damaged, and say why (I9)."""
        if partition.failure is None:
            log.error("partition %s is stopped: %s", partition.name, error)
            partition.fail(error)
        if isinstance(error, WriteFailure):
            self._journal_options.on_failure(error)

    def _paths(self, topic: Topic, number: int) -> tuple[Path, Path]:
        directory = Path(topic.directory_name) / str(number)
        return self._directory.journal / directory, self._directory.log / directory

    # -- changing ------------------------------------------------------------------------------------------------

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> HostedTopic:
        """Make a topic. Raises TopicError, InvalidTopicConfig, TooManyPartitions."""
        check_configs(configs)
        async with self._changing, self._disk_in_doubt():
            self._ensure_room(partitions)
            topic = await self._topics.create(name, partitions, configs)
            hosted = HostedTopic(topic, self._settings)
            try:
                self._host(hosted, await self._make(hosted, 0, partitions))
            except FaircopyError:
                await self._topics.delete(topic)  # its directories go with the next start
                raise
            return hosted

    @contextlib.asynccontextmanager
    async def _disk_in_doubt(self) -> AsyncIterator[None]:
        """I10: when files or directories can't be made or deleted, nobody knows what is there: restart from disk."""
        try:
            yield
        except WriteFailure as error:
            self._journal_options.on_failure(error)
            raise

    def _ensure_room(self, partitions: int) -> None:
        if len(self._partitions) + partitions > PARTITIONS_MAX:
            raise TooManyPartitions(
                f"{partitions} more partitions are asked for; a broker takes {PARTITIONS_MAX} in all"
            )

    async def _make(self, hosted: HostedTopic, first: int, end: int) -> list[HostedPartition]:
        """New partitions of a topic. Raises what kept one of them from being made."""
        made = await self._disk.run(self._open_range, hosted, first, end)
        for partition in made:
            if partition.failure is not None:
                raise partition.failure
        return made

    def _open_range(self, hosted: HostedTopic, first: int, end: int) -> list[HostedPartition]:
        for path in self._paths(hosted.topic, 0):
            make_directory(path.parent)
        return [self._open(hosted, number) for number in range(first, end)]

    async def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions. Raises UnknownTopic, TooManyPartitions."""
        async with self._changing, self._disk_in_doubt():
            hosted = self.known(name)
            self._ensure_room(partitions - hosted.topic.partitions)
            before = hosted.topic.partitions
            grown = await self._topics.replace(hosted.topic._replace(partitions=partitions))
            try:
                made = await self._make(hosted, before, partitions)
            except FaircopyError:
                await self._topics.replace(hosted.topic)
                raise
            hosted.change(grown)
            self._host(hosted, made)

    async def configure(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's own settings. Raises UnknownTopic, InvalidTopicConfig."""
        check_configs(configs)
        async with self._changing:
            hosted = self.known(name)
            hosted.change(await self._topics.replace(hosted.topic._replace(configs=dict(configs))))
            self.on_change(hosted, True)

    async def delete(self, name: str) -> None:
        """Delete a topic with all its data. Raises UnknownTopic."""
        async with self._changing, self._disk_in_doubt():
            hosted = self.known(name)
            if self.before_delete is not None:
                await self.before_delete(hosted)
            await self._topics.delete(hosted.topic)
            del self.topics[name]
            for partition in hosted.partitions:
                del self._partitions[partition.name]
                partition.abandon(UnknownTopic(f"topic {name!r} is deleted"))
                partition.log.notify()
            self.on_change(hosted, False)
            await self._remove(hosted)
            # Still under the lock: nobody makes a topic of this name before its offsets are forgotten.
            if self.after_delete is not None:
                await self.after_delete()

    async def _remove(self, hosted: HostedTopic) -> None:
        for partition in hosted.partitions:
            await partition.let_go()
            for segment in partition.journal.reclaim_all():
                await self._disk.run(segment.discard)
            for log_segment in partition.log.segments:
                await self._disk.run(log_segment.discard)
        for path in self._paths(hosted.topic, 0):
            await self._disk.run(delete_tree, path.parent)
        for partition in hosted.partitions:
            await self._store.write(delete_partition(partition.identity))

    def known(self, name: str) -> HostedTopic:
        """The topic of this name. Raises UnknownTopic."""
        if name not in self.topics:
            raise UnknownTopic(f"there is no topic {name!r}")
        return self.topics[name]

    async def remove_leftovers(self) -> None:
        """Delete directories of topics that were deleted when a crash came."""
        wanted = {hosted.topic.directory_name for hosted in self.topics.values()}
        for root in (self._directory.journal, self._directory.log):
            for child in list_directory(root):
                if "." in child.name and child.name not in wanted and not child.name.startswith("_"):
                    await self._disk.run(delete_tree, child)
