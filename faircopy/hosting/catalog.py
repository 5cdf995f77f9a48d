"""The topics and partitions that this broker serves: it opens, creates, changes and deletes them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import TypeVar

from faircopy.catalogue.dynamic_settings import Decide
from faircopy.catalogue.producer_ids import ProducerIds
from faircopy.catalogue.topic_configs import as_read, check_configs
from faircopy.catalogue.topics import (
    CannotMakeTopic,
    Topic,
    TopicExists,
    Topics,
    UnknownTopic,
    UnknownTopicId,
    check_topic_name,
    ensure_not_reserved,
    is_topic_directory,
)
from faircopy.copier.checkpoint import delete_partition
from faircopy.errors import FaircopyError, invariant
from faircopy.hosting.hosted_topic import HostedTopic, settings_text
from faircopy.hosting.stopping import Stopping
from faircopy.hosting.table_agreement import ensure_agreement
from faircopy.hosting.topic_changes import DecideCount, DecideNew, TopicChanges
from faircopy.journal.errors import JournalFull
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.pace import NO_PACE, Pace
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import PartitionResources, Unopened, open_partition
from faircopy.partition.opening_many import open_many
from faircopy.settings.table import Settings
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.paths import delete_tree, list_directory, make_directory

log = logging.getLogger(__name__)

PARTITIONS_MAX = 100_000
Asked = TypeVar("Asked", bound=Hashable)


class TooManyPartitions(FaircopyError):
    """The request would exceed the number of partitions that one broker may have."""


class Catalog:
    """All topics of this broker."""

    def __init__(
        self,
        topics: Topics,
        directory: DataDirectory,
        settings: Settings,
        resources: PartitionResources,
        stopping: Stopping,
        leader_epoch_of: Callable[[TopicIdPartition], int],
        producer_ids: ProducerIds,
    ) -> None:
        """`leader_epoch_of` gives the epoch under which this broker leads a partition, on any thread."""
        self._topics = topics
        self._directory = directory
        self._settings = settings
        self._resources = resources
        self._disk = resources.disk
        self._space = resources.journal_options.space
        self._stopping = stopping
        self._leader_epoch_of = leader_epoch_of
        self._producer_ids = producer_ids
        self._changing = asyncio.Lock()
        self.topics: dict[str, HostedTopic] = {}
        self._partitions: dict[tuple[str, int], HostedPartition] = {}
        self._by_id: dict[TopicIdPartition, HostedPartition] = {}
        self.on_change: Callable[[HostedTopic, bool], None] = lambda _topic, _exists: None
        self.goes_with: Callable[[Collection[HostedTopic]], Mapping[str, bytes | None]] = lambda _topics: {}
        self.after_delete: Callable[[], Awaitable[None]] | None = None
        self.ensure_led: Callable[[], None] = lambda: None

    # -- looking up ------------------------------------------------------------------------------------------

    def find(self, topic: str, partition: int) -> HostedPartition | None:
        """A partition, or None."""
        return self._partitions.get((topic, partition))

    def find_by_id(self, partition_id: TopicIdPartition) -> HostedPartition | None:
        """A partition; None if its topic is deleted, even if another one has its name now."""
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

    # -- opening ---------------------------------------------------------------------------------------------

    async def open_all(self) -> None:
        """Open and recover all partitions, several at a time: they wait for the disk, not for one another. A
        damaged one is stopped, and the others serve.

        Raises NoSpace: a partition stopped for lack of space would stay stopped when there is space again.
        """
        topics = [HostedTopic(topic, self._settings) for topic in self._topics.load()]
        places = ((hosted, number) for hosted in topics for number in range(hosted.topic.partitions))
        found = iter(await self._open_many(places))
        for hosted in topics:
            self._host(hosted, [next(found) for _ in range(hosted.topic.partitions)])

    async def open_again(self, is_wanted: Callable[[TopicIdPartition], bool]) -> list[HostedPartition]:
        """Open partitions again that had no leader for a while. `host_again` serves them. Raises NoSpace."""
        names = [each.name for each in self.partitions() if is_wanted(each.id)]
        return await self._open_many((self.topics[topic], number) for topic, number in names)

    def host_again(self, opened: Iterable[HostedPartition]) -> None:
        """Serve these partitions in place of their former instances."""
        changed = {}
        for partition in opened:
            self._stopping.tell_of_failure(partition)
            partition.count_drafts()
            hosted = changed[partition.name.topic] = self.topics[partition.name.topic]
            hosted.partitions[partition.name.partition] = partition
            self._partitions[partition.name] = self._by_id[partition.id] = partition
        for hosted in changed.values():
            hosted.change(hosted.topic)  # settings may have changed meanwhile
            self.on_change(hosted, True)

    def _host(self, hosted: HostedTopic, partitions: list[HostedPartition]) -> None:
        for partition in partitions:
            self._stopping.tell_of_failure(partition)
            partition.count_drafts()
        hosted.partitions.extend(partitions)
        hosted.change(hosted.topic)  # settings may have changed meanwhile
        self.topics[hosted.topic.name] = hosted
        for partition in partitions:
            self._partitions[partition.name] = partition
            self._by_id[partition.id] = partition
        self.on_change(hosted, True)

    async def _open_many(self, places: Iterable[tuple[HostedTopic, int]]) -> list[HostedPartition]:
        return await open_many([self._unopened(*place) for place in places], self._resources)

    def _unopened(self, hosted: HostedTopic, number: int) -> Unopened:
        partition_id = hosted.topic.partition_id(number)
        return Unopened(
            PartitionName(hosted.topic.name, number),
            partition_id,
            *self._paths(hosted.topic, number),
            int(hosted.config("segment.bytes")),
            self._leader_epoch_of(partition_id),
        )

    def stop(self, partition: HostedPartition, error: FaircopyError) -> None:
        """Stop a damaged partition, and log why (I9)."""
        self._stopping.stop(partition, error)

    def _paths(self, topic: Topic, number: int) -> tuple[Path, Path]:
        directory = Path(topic.directory_name) / str(number)
        return self._directory.journal / directory, self._directory.log / directory

    # -- changing --------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Hold off the creation, change and deletion of topics."""
        async with self._changing:
            yield

    @contextlib.asynccontextmanager
    async def _change(self, changes: TopicChanges) -> AsyncIterator[None]:
        """Make these changes in the block, and no others meanwhile. An error that concerns them all refuses
        what is not done yet.
        """
        async with self._changing:
            try:
                async with self._stopping.if_write_fails():
                    yield
            except FaircopyError as error:
                changes.refuse_the_rest(error)

    async def _write(self, changes: TopicChanges) -> None:
        """Store new and changed topics, if there are any, by one durable write. They get their versions."""
        if changes.topics:
            for topic in await self._topics.write(changes.topics.values()):
                changes.topics[topic.name] = topic

    async def create(
        self, wanted: Mapping[str, DecideNew], pace: Pace = NO_PACE, *, validate_only: bool = False
    ) -> TopicChanges:
        """Create topics, by name. They are refused by TopicError, InvalidTopicConfig, TooManyPartitions,
        JournalFull, and what decides about them.
        """
        changes = TopicChanges(wanted)
        async with self._change(changes):
            async for name, decide in pace.through(wanted.items()):
                with changes.refusing(name):
                    self._plan_new(changes, name, decide)
            if not validate_only:
                await self._write(changes)
                await self._make_new(changes, list(changes.topics.values()), pace)
        return changes

    def _plan_new(self, changes: TopicChanges, name: str, decide: DecideNew) -> None:
        # In Kafka's order: Connect and others rely on hearing first that a topic exists.
        check_topic_name(name)
        ensure_not_reserved(name)
        if name in self.topics:
            raise TopicExists(f"topic {name!r} exists")
        partitions, configs = decide()
        check_configs(configs)
        ensure_agreement(name, configs, self.topics, changes.topics.values())
        self._ensure_room(changes, partitions)
        changes.topics[name] = self._topics.new(name, partitions, configs, self._producer_ids.next_id)

    async def _make_new(self, changes: TopicChanges, stored: Sequence[Topic], pace: Pace) -> None:
        """Make the partitions of new topics. A topic that gets none is deleted again."""
        try:
            async for topic in pace.through(stored):
                with changes.carrying_out(topic.name):
                    hosted = HostedTopic(topic, self._settings)
                    self._host(hosted, await self._make(hosted, 0, topic.partitions))
                    settings = settings_text(topic.configs)
                    log.info("topic %s made with %d partition(s)%s", topic.name, topic.partitions, settings)
        finally:
            unmade = [topic for topic in stored if topic.name not in self.topics]
            if unmade:
                await self._topics.write(deleted=unmade)

    def _ensure_room(self, changes: TopicChanges, partitions: int) -> None:
        """Raise JournalFull, TooManyPartitions, or count these partitions, which a request asks for."""
        self.ensure_led()
        if (lacking := self._space.shortage) is not None:
            raise JournalFull(f"topics and partitions can't be created while the disk is full: {lacking}")
        if len(self._partitions) + changes.partitions + partitions > PARTITIONS_MAX:
            raise TooManyPartitions(
                f"{partitions} more partitions are requested, but a broker has {PARTITIONS_MAX} at most"
            )
        changes.partitions += partitions

    async def _make(self, hosted: HostedTopic, first: int, end: int) -> list[HostedPartition]:
        """Create new partitions of a topic. If one of them fails, none is left, and its error is raised."""
        # Before any is opened: whatever fails afterwards deletes their files.
        hosted_already = [n for n in range(first, end) if hosted.topic.partition_id(n) in self._by_id]
        invariant(
            not hosted_already, f"partitions {hosted_already} of {hosted.topic.name!r} are hosted already"
        )
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
            made.append(open_partition(self._unopened(hosted, number), self._resources))

    async def _unmake(self, hosted: HostedTopic, made: list[HostedPartition], first: int) -> None:
        """Remove partitions that nobody has seen. What can't be removed now is removed at the next start."""
        for partition in made:
            partition.abandon(UnknownTopic(f"{partition.name} was never created"))
        roots = self._paths(hosted.topic, 0) if first == 0 else ()
        try:
            await self._remove_files(made, [path.parent for path in roots])
            await self._forget([partition.id for partition in made])
        except (FaircopyError, OSError) as error:
            log.warning("files of %s stay until the next start: %s", hosted.topic.name, error)

    async def grow(
        self, counts: Mapping[str, DecideCount], pace: Pace = NO_PACE, *, validate_only: bool = False
    ) -> TopicChanges:
        """Give topics, by name, more partitions. They are refused by UnknownTopic, TooManyPartitions,
        JournalFull, and what decides about them.
        """
        changes = TopicChanges(counts)
        async with self._change(changes):
            async for name, decide in pace.through(counts.items()):
                with changes.refusing(name):
                    self._plan_growth(changes, name, decide)
            if not validate_only:
                await self._write(changes)
                await self._make_more(changes, list(changes.topics.values()), pace)
        return changes

    def _plan_growth(self, changes: TopicChanges, name: str, decide: DecideCount) -> None:
        topic = self.known(name).topic
        before, partitions = topic.partitions, decide(topic.partitions)
        invariant(partitions > before, f"topic {name!r} has {before} partitions, and gets {partitions}")
        self._ensure_room(changes, partitions - before)
        changes.topics[name] = topic._replace(partitions=partitions)

    async def _make_more(self, changes: TopicChanges, stored: Sequence[Topic], pace: Pace) -> None:
        """Make the new partitions of topics. A topic that gets none is stored as it was before."""
        try:
            async for topic in pace.through(stored):
                with changes.carrying_out(topic.name):
                    hosted = self.topics[topic.name]
                    made = await self._make(hosted, hosted.topic.partitions, topic.partitions)
                    hosted.change(topic)
                    self._host(hosted, made)
                    log.info("topic %s has %d partitions now", topic.name, topic.partitions)
        finally:
            await self._take_back(topic for topic in stored if self.topics[topic.name].topic is not topic)

    async def _take_back(self, grown: Iterable[Topic]) -> None:
        back = [each._replace(partitions=self.topics[each.name].topic.partitions) for each in grown]
        for topic in await self._topics.write(back) if back else ():
            self.topics[topic.name].change(topic)

    async def configure(
        self, decisions: Mapping[str, Decide], pace: Pace = NO_PACE, *, validate_only: bool = False
    ) -> TopicChanges:
        """Change the own settings of topics, by name. They are refused by UnknownTopic, InvalidTopicConfig,
        and what decides about them.
        """
        changes = TopicChanges(decisions)
        async with self._change(changes):
            async for name, decide in pace.through(decisions.items()):
                with changes.refusing(name):
                    self._plan_settings(changes, name, decide)
            if not validate_only:
                await self._write(changes)
                async for topic in pace.through(list(changes.topics.values())):
                    with changes.carrying_out(topic.name):
                        self.topics[topic.name].change(topic)
                        self.on_change(self.topics[topic.name], True)
                        log.info("topic %s changed%s", topic.name, settings_text(topic.configs))
        return changes

    def _plan_settings(self, changes: TopicChanges, name: str, decide: Decide) -> None:
        topic = self.known(name).topic
        decided = as_read(decide(topic.configs))
        check_configs(decided)
        configs = {key: value for key, value in decided.items() if value is not None}
        ensure_agreement(name, configs, self.topics, changes.topics.values())
        changes.topics[name] = topic._replace(configs=configs)

    def settings_changed(self) -> None:
        """Note that the broker's settings changed: some are defaults of topics."""
        for hosted in self.topics.values():
            hosted.change(hosted.topic)
            self.on_change(hosted, True)

    async def delete(
        self, finds: Mapping[Asked, Callable[[], HostedTopic]], pace: Pace = NO_PACE
    ) -> TopicChanges:
        """Delete the topics that `finds` find, each another one, with all their data. They are refused by
        what does not find them, such as UnknownTopic, by NotLed, and if their files can't be deleted.
        """
        changes, doomed = TopicChanges(finds), dict[Asked, HostedTopic]()
        async with self._change(changes):
            self.ensure_led()
            async for key, find in pace.through(finds.items()):
                with changes.refusing(key):
                    doomed[key] = find()
                    changes.topics[key] = doomed[key].topic
            if doomed:
                also = self.goes_with(doomed.values())
                await self._topics.write(deleted=changes.topics.values(), also=also)
                await self._remove_topics(changes, doomed, pace)
        return changes

    async def _remove_topics(
        self, changes: TopicChanges, doomed: Mapping[Asked, HostedTopic], pace: Pace
    ) -> None:
        """Stop serving deleted topics, and delete their data."""
        async for hosted in pace.through(list(doomed.values())):
            self._unhost(hosted)
        for key, hosted in doomed.items():
            with changes.carrying_out(key):
                roots = [path.parent for path in self._paths(hosted.topic, 0)]
                await self._remove_files(hosted.partitions, roots)
                log.info("topic %s deleted", hosted.topic.name)
        await self._forget([partition.id for hosted in doomed.values() for partition in hosted.partitions])
        self._topics.note_gone(doomed[key].topic for key in doomed if key not in changes.refused)
        # Still under the lock: nobody creates a topic of one of these names before the old one's offsets are
        # forgotten.
        if self.after_delete is not None:
            await self.after_delete()

    def _unhost(self, hosted: HostedTopic) -> None:
        del self.topics[hosted.topic.name]
        for partition in hosted.partitions:
            del self._partitions[partition.name], self._by_id[partition.id]
            partition.abandon(UnknownTopic(f"topic {hosted.topic.name!r} is deleted"))
            partition.log.notify()
        self.on_change(hosted, False)

    async def _remove_files(self, partitions: Sequence[HostedPartition], directories: Iterable[Path]) -> None:
        for partition in partitions:
            await partition.delete_files()
        for path in directories:
            await self._disk.run(delete_tree, path)

    async def _forget(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Delete the rows of partitions whose files are deleted, in one transaction of the state store."""
        rows = [row for partition in partitions for row in delete_partition(partition.identity)]
        if rows:
            await self._resources.store.write(rows)

    def known(self, name: str) -> HostedTopic:
        """The topic of this name. Raises UnknownTopic."""
        if name not in self.topics:
            raise UnknownTopic(f"there is no topic {name!r}")
        return self.topics[name]

    def known_by_id(self, topic_id: bytes) -> HostedTopic:
        """The topic with this id. Raises UnknownTopicId."""
        for hosted in self.topics.values():
            if hosted.topic.id.bytes == topic_id:
                return hosted
        raise UnknownTopicId(f"there is no topic with id {topic_id.hex()}")

    async def remove_leftovers(self) -> None:
        """Delete what a crash has left of deleted topics. What belongs to no topic that is known stays."""
        deleted = self._topics.deleted()
        for topic in deleted:
            for path in self._paths(topic, 0):
                await self._disk.run(delete_tree, path.parent)
        await self._forget(topic.partition_id(n) for topic in deleted for n in range(topic.partitions))
        self._topics.note_gone(deleted)
        known = {hosted.topic.directory_name for hosted in self.topics.values()}
        for root in (self._directory.journal, self._directory.log):
            for child in list_directory(root):
                if is_topic_directory(child.name) and child.name not in known:
                    log.warning(
                        "%s belongs to no topic that the catalogue knows, so it is left alone. If there "
                        "should be one, restore the directory from a backup; if not, move it away", child,
                    )  # fmt: skip
