"""The topics and partitions that this broker serves: opening, making, changing and deleting them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from faircopy.cluster.topic_configs import CONFIGS, INT64_MAX, check_configs
from faircopy.cluster.topics import CannotMakeTopic, Topic, Topics, UnknownTopic, is_topic_directory
from faircopy.copier.checkpoint import delete_partition
from faircopy.copier.log_copier import LogCopier
from faircopy.datalog.log import DataLog, LogEnd
from faircopy.errors import FaircopyError
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.partition.name import PartitionName
from faircopy.partition.partition import Partition
from faircopy.settings.table import Settings
from faircopy.storage.clock import Clock
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.disk import Disk
from faircopy.storage.failures import Shortage, WriteFailure
from faircopy.storage.paths import delete_tree, list_directory, make_directory
from faircopy.storage.state_store import StateStore

log = logging.getLogger(__name__)

PARTITIONS_MAX = 100_000
OPENERS = 3
"""Threads that open partitions. More would wait for each other rather than for the disk: most of it is Python."""
OPENED_AT_ONCE = 8  # by one thread, before the loop is told


class TooManyPartitions(FaircopyError):
    """More partitions are asked for than one broker takes."""


class HostedPartition(Partition):
    """A partition of a topic, with its visible log. What is in the log is for all readers (P1, P3, P4)."""

    log: DataLog
    copier: LogCopier

    def abandon(self, error: FaircopyError) -> None:
        self.copier.abandon()
        super().abandon(error)

    def stop_serving(self) -> None:
        super().stop_serving()
        self.log.notify()  # who waits for messages asks elsewhere

    @property
    def is_at_work(self) -> bool:
        return super().is_at_work or self.copier.is_at_work


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
        self.segment_ms = int(self.config("segment.ms"))
        difference_ms = int(self.config("message.timestamp.difference.max.ms"))
        self.timestamp_before_max_ms = min(difference_ms, int(self.config("message.timestamp.before.max.ms")))
        self.timestamp_after_max_ms = min(difference_ms, int(self.config("message.timestamp.after.max.ms")))
        has_limits = min(self.timestamp_before_max_ms, self.timestamp_after_max_ms) < INT64_MAX
        self.has_timestamp_limits = has_limits and not self.has_log_append_time
        self.acks_expected_offsets = self.config("transactional.ack.offset") == "expected"
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


def settings_text(configs: Mapping[str, str]) -> str:
    """A topic's own settings, for the log."""
    return "".join(f", {key}={value}" for key, value in configs.items())


Unopened = tuple[HostedTopic, int]
"""A partition that is to be opened: its topic and number."""


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
        clock: Clock,
        leader_epoch_of: Callable[[TopicIdPartition], int],
    ) -> None:
        """`leader_epoch_of`, under which epoch this broker leads a partition, is called on any thread."""
        self._partition_type = partition_type
        self._topics = topics
        self._directory = directory
        self._store = store
        self._disk = disk
        self._loop = loop
        self._settings = settings
        self._journal_options = journal_options
        self._clock = clock
        self._leader_epoch_of = leader_epoch_of
        self._changing = asyncio.Lock()
        self.topics: dict[str, HostedTopic] = {}
        self._partitions: dict[tuple[str, int], HostedPartition] = {}
        self._by_id: dict[TopicIdPartition, HostedPartition] = {}
        self.on_change: Callable[[HostedTopic, bool], None] = lambda _topic, _exists: None
        self.goes_with: Callable[[HostedTopic], Mapping[str, bytes | None]] = lambda _topic: {}
        self.after_delete: Callable[[], Awaitable[None]] | None = None
        self.ensure_led: Callable[[], None] = lambda: None

    # -- looking up ----------------------------------------------------------------------------------------------

    def find(self, topic: str, partition: int) -> HostedPartition | None:
        """A partition, or None."""
        return self._partitions.get((topic, partition))

    def find_by_id(self, partition_id: TopicIdPartition) -> HostedPartition | None:
        """A partition, or None if its topic is deleted, whatever was made in its place."""
        return self._by_id.get(partition_id)

    def find_id(self, topic: str, partition: int) -> TopicIdPartition | None:
        """The id of the partition that has this name now; None if there is none."""
        found = self.find(topic, partition)
        return found.id if found is not None else None

    def name_of(self, partition_id: TopicIdPartition) -> PartitionName | None:
        """The name of a partition; None if its topic is deleted."""
        found = self._by_id.get(partition_id)
        return found.name if found is not None else None

    def partitions(self) -> Iterator[HostedPartition]:
        """All partitions."""
        return iter(list(self._partitions.values()))

    # -- opening -------------------------------------------------------------------------------------------------

    async def open_all(self) -> None:
        """Open and recover every partition, several at a time: they wait for the disk, not for one another. A damaged
        one is marked so, and the others serve on.

        Raises NoSpace: a partition that lacks space to recover would stay stopped when there is some again.
        """
        topics = [HostedTopic(topic, self._settings) for topic in self._topics.load()]
        places = [(hosted, number) for hosted in topics for number in range(hosted.topic.partitions)]
        found = iter(await self._open_all(places))
        for hosted in topics:
            self._host(hosted, [next(found) for _ in range(hosted.topic.partitions)])

    async def open_again(self, is_wanted: Callable[[TopicIdPartition], bool]) -> list[HostedPartition]:
        """Open partitions anew that had no leader for a while; `host_again` has them served. Raises NoSpace."""
        names = [each.name for each in self.partitions() if is_wanted(each.id)]
        return await self._open_all([(self.topics[topic], number) for topic, number in names])

    def host_again(self, opened: Iterable[HostedPartition]) -> None:
        """Serve them, in place of those that they were opened for."""
        changed = {}
        for partition in opened:
            self._tell_of_failure(partition)
            hosted = changed[partition.name.topic] = self.topics[partition.name.topic]
            hosted.partitions[partition.name.partition] = partition
            self._partitions[partition.name] = self._by_id[partition.id] = partition
        for hosted in changed.values():
            self.on_change(hosted, True)

    async def _open_all(self, places: Sequence[Unopened]) -> list[HostedPartition]:
        parts = [places[at : at + OPENED_AT_ONCE] for at in range(0, len(places), OPENED_AT_ONCE)]
        opened: dict[int, list[HostedPartition]] = {}
        waiting = iter(enumerate(parts))
        await asyncio.gather(*(self._open_parts(waiting, opened) for _ in range(OPENERS)))
        return [partition for number in range(len(parts)) for partition in opened[number]]

    async def _open_parts(
        self, waiting: Iterator[tuple[int, Sequence[Unopened]]], opened: dict[int, list[HostedPartition]]
    ) -> None:
        for number, places in waiting:
            opened[number] = await self._disk.run(self._open_some, places)

    def _open_some(self, places: Sequence[Unopened]) -> list[HostedPartition]:
        return [self._open(*place) for place in places]

    def _host(self, hosted: HostedTopic, partitions: list[HostedPartition]) -> None:
        for partition in partitions:
            self._tell_of_failure(partition)
        hosted.partitions.extend(partitions)
        self.topics[hosted.topic.name] = hosted
        for partition in partitions:
            self._partitions[partition.name] = partition
            self._by_id[partition.id] = partition
        self.on_change(hosted, True)

    def _tell_of_failure(self, partition: HostedPartition) -> None:
        if partition.failure is not None:
            log.error("partition %s is stopped: %s", partition.name, partition.failure)
            self._end_if_of_disk(partition.failure)

    def _open(self, hosted: HostedTopic, number: int) -> HostedPartition:
        """Open one partition of a topic; one that is damaged is stopped. Blocks, on any thread: who takes the
        partition in tells of its failure. Raises NoSpace.
        """
        topic = hosted.topic
        partition_id = topic.partition_id(number)
        identity = partition_id.identity
        journal_path, log_path = self._paths(topic, number)
        journal = Journal(journal_path, identity, self._disk, self._loop, self._journal_options)
        journal.leader_epoch = self._leader_epoch_of(partition_id)
        data_log = DataLog(log_path, identity, self._store, int(hosted.config("segment.bytes")), self._clock.steady_ms)
        copier = LogCopier(
            journal, data_log, self._store, self._disk, self._loop, lambda error: self.stop(partition, error)
        )
        name = PartitionName(topic.name, number)
        partition = self._partition_type(name, partition_id, journal, copier, self._store, self._disk)
        partition.log, partition.copier = data_log, copier
        try:
            self._recover(partition)
        except Shortage:
            raise
        except (FaircopyError, OSError) as error:
            partition.fail(error if isinstance(error, FaircopyError) else FaircopyError(str(error)))
        return partition

    def _recover(self, partition: HostedPartition) -> None:
        self._store.ensure_sound(partition.identity)
        checkpoint = partition.load()
        if checkpoint is None:
            partition.log.open(None, 0, 0)
        else:
            base = checkpoint.log_segment_base
            end = LogEnd(base, checkpoint.log_byte) if base is not None else None
            partition.log.open(
                end, checkpoint.start_offset, checkpoint.next_offset, checkpoint.greatest_time_ms, checkpoint.epochs
            )
        partition.recover()

    def stop(self, partition: HostedPartition, error: FaircopyError) -> None:
        """Serve nothing more of a partition that is damaged, and say why (I9)."""
        if partition.failure is None:
            partition.fail(error)
            log.error("partition %s is stopped: %s", partition.name, error)
        self._end_if_of_disk(error)

    def _end_if_of_disk(self, error: FaircopyError) -> None:
        """I10: after a failed write nothing is known, and the broker stops."""
        if isinstance(error, WriteFailure):
            self._journal_options.on_failure(error)

    def _paths(self, topic: Topic, number: int) -> tuple[Path, Path]:
        directory = Path(topic.directory_name) / str(number)
        return self._directory.journal / directory, self._directory.log / directory

    # -- changing ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Meanwhile no topic is made, changed or deleted."""
        async with self._changing:
            yield

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> HostedTopic:
        """Make a topic. Raises TopicError, InvalidTopicConfig, TooManyPartitions."""
        check_configs(configs)
        async with self._changing, self._disk_in_doubt():
            self._ensure_room(partitions)
            topic = await self._topics.create(name, partitions, configs)
            hosted = HostedTopic(topic, self._settings)
            try:
                self._host(hosted, await self._make(hosted, 0, partitions))
            except Exception:
                await self._topics.delete(topic)
                raise
            log.info("topic %s made with %d partition(s)%s", name, partitions, settings_text(configs))
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
        self.ensure_led()
        if (lacking := self._journal_options.space.lacking) is not None:
            raise JournalFull(f"no topics and partitions are made as long as the disk is full: {lacking}")
        if len(self._partitions) + partitions > PARTITIONS_MAX:
            raise TooManyPartitions(
                f"{partitions} more partitions are asked for; a broker takes {PARTITIONS_MAX} in all"
            )

    async def _make(self, hosted: HostedTopic, first: int, end: int) -> list[HostedPartition]:
        """New partitions of a topic. Raises what kept one of them from being made; then none is left."""
        made: list[HostedPartition] = []
        try:
            await self._disk.run(self._open_range, hosted, first, end, made)
            for partition in made:
                if partition.failure is not None:
                    raise partition.failure
        except Exception as error:
            await self._unmake(hosted, made, first)
            if isinstance(error, OSError):
                raise CannotMakeTopic(f"making topic {hosted.topic.name!r}: {error}") from error
            raise
        return made

    def _open_range(self, hosted: HostedTopic, first: int, end: int, made: list[HostedPartition]) -> None:
        for path in self._paths(hosted.topic, 0):
            make_directory(path.parent)
        for number in range(first, end):
            made.append(self._open(hosted, number))

    async def _unmake(self, hosted: HostedTopic, made: list[HostedPartition], first: int) -> None:
        """Remove partitions that nobody has seen; what can't be removed now goes with the next start."""
        for partition in made:
            partition.abandon(UnknownTopic(f"{partition.name} was never made"))
        roots = self._paths(hosted.topic, 0) if first == 0 else ()
        try:
            await self._remove(made, [path.parent for path in roots])
        except (FaircopyError, OSError) as error:
            log.warning("files of %s are left until the next start: %s", hosted.topic.name, error)

    async def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions. Raises UnknownTopic, TooManyPartitions."""
        async with self._changing, self._disk_in_doubt():
            hosted = self.known(name)
            self._ensure_room(partitions - hosted.topic.partitions)
            before = hosted.topic.partitions
            grown = await self._topics.replace(hosted.topic._replace(partitions=partitions))
            try:
                made = await self._make(hosted, before, partitions)
            except Exception:
                hosted.change(await self._topics.replace(grown._replace(partitions=before)))
                raise
            hosted.change(grown)
            self._host(hosted, made)
            log.info("topic %s has %d partitions now", name, partitions)

    async def configure(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's own settings. Raises UnknownTopic, InvalidTopicConfig."""
        check_configs(configs)
        async with self._changing:
            hosted = self.known(name)
            hosted.change(await self._topics.replace(hosted.topic._replace(configs=dict(configs))))
            self.on_change(hosted, True)
            log.info("topic %s changed%s", name, settings_text(configs))

    def settings_changed(self) -> None:
        """The broker's settings changed, of which some are defaults of topics."""
        for hosted in self.topics.values():
            hosted.change(hosted.topic)
            self.on_change(hosted, True)

    async def delete(self, name: str) -> None:
        """Delete a topic with all its data. Raises UnknownTopic."""
        async with self._changing, self._disk_in_doubt():
            self.ensure_led()
            hosted = self.known(name)
            await self._topics.delete(hosted.topic, self.goes_with(hosted))
            del self.topics[name]
            for partition in hosted.partitions:
                del self._partitions[partition.name], self._by_id[partition.id]
                partition.abandon(UnknownTopic(f"topic {name!r} is deleted"))
                partition.log.notify()
            self.on_change(hosted, False)
            await self._remove(hosted.partitions, [path.parent for path in self._paths(hosted.topic, 0)])
            # Still under the lock: nobody makes a topic of this name before its offsets are forgotten.
            if self.after_delete is not None:
                await self.after_delete()
            log.info("topic %s deleted", name)

    async def _remove(self, partitions: Sequence[HostedPartition], directories: Iterable[Path]) -> None:
        for partition in partitions:
            await partition.let_go()
            for segment in partition.journal.reclaim_all():
                await self._disk.run(segment.discard)
            for log_segment in partition.log.segments:
                await self._disk.run(log_segment.discard)
        for path in directories:
            await self._disk.run(delete_tree, path)
        for partition in partitions:
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
                if is_topic_directory(child.name) and child.name not in wanted:
                    await self._disk.run(delete_tree, child)
