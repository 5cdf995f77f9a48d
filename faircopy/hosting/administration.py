"""Topics are made, grown, configured and deleted: one request after another, each with one durable write."""

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
    check_topic_name,
    ensure_not_reserved,
    of_no_topic,
)
from faircopy.copier.checkpoint import delete_partition
from faircopy.errors import FaircopyError, invariant
from faircopy.hosting.hosted_topic import HostedTopic, settings_text
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.stopping import Stopping
from faircopy.hosting.table_agreement import ensure_agreement, ensure_no_table, ensure_none_is_asked_for
from faircopy.hosting.topic_changes import DecideCount, DecideNew, TopicChanges
from faircopy.journal.errors import JournalFull, NotEnoughReplicas
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.pace import NO_PACE, Pace
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.opening import PartitionResources, open_partition
from faircopy.settings.table import Settings
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.paths import delete_tree, make_directory

log = logging.getLogger(__name__)

PARTITIONS_MAX = 100_000
TAKE_BACK_SECONDS = 1.0
Asked = TypeVar("Asked", bound=Hashable)


class TooManyPartitions(FaircopyError):
    """The request would exceed the number of partitions that one broker may have."""


class TopicAdministration:
    """Changes the topics of this broker: in the catalogue first, then what the broker hosts of them.

    `goes_with` gives the changes of the catalogue that belong to a deletion, `after_delete` is called at its
    end, and `ensure_led` raises NotLed if a partition has no leader now.
    """

    def __init__(
        self,
        stored: Topics,
        hosted: HostedTopics,
        directory: DataDirectory,
        settings: Settings,
        resources: PartitionResources,
        stopping: Stopping,
        producer_ids: ProducerIds,
    ) -> None:
        self._stored = stored
        self._hosted = hosted
        self._directory = directory
        self._settings = settings
        self._resources = resources
        self._disk = resources.disk
        self._space = resources.journal_options.space
        self._stopping = stopping
        self._producer_ids = producer_ids
        self._changing = asyncio.Lock()
        self.goes_with: Callable[[Collection[HostedTopic]], Mapping[str, bytes | None]] = lambda _topics: {}
        self.after_delete: Callable[[], Awaitable[None]] | None = None
        self.ensure_led: Callable[[], None] = lambda: None

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
            for topic in await self._stored.write(changes.topics.values()):
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
        if name in self._hosted.topics:
            raise TopicExists(f"topic {name!r} exists")
        partitions, configs = decide()
        check_configs(configs)
        self._ensure_table(name, configs, changes)
        self._ensure_room(changes, partitions)
        changes.topics[name] = self._stored.new(name, partitions, configs, self._producer_ids.next_id)

    def _ensure_table(self, name: str, configs: Mapping[str, str], changes: TopicChanges) -> None:
        """Raise InvalidTopicConfig if a topic can't have the plain table that its settings ask for."""
        if self._hosted.is_shared:
            ensure_no_table(name, configs)
        if self._hosted.tables_are_off:
            before = self._hosted.topics.get(name)
            ensure_none_is_asked_for(name, configs, before.topic.configs if before is not None else {})
        ensure_agreement(name, configs, self._hosted.topics, changes.topics.values())

    async def _make_new(self, changes: TopicChanges, stored: Sequence[Topic], pace: Pace) -> None:
        """Make the partitions of new topics. A topic that gets none is deleted again."""
        try:
            async for topic in pace.through(stored):
                with changes.carrying_out(topic.name):
                    hosted = HostedTopic(topic, self._settings)
                    self._hosted.host(hosted, await self._make(hosted, 0, topic.partitions))
                    settings = settings_text(topic.configs)
                    log.info("topic %s made with %d partition(s)%s", topic.name, topic.partitions, settings)
        finally:
            unmade = [topic for topic in stored if topic.name not in self._hosted.topics]
            await self._take_back(deleted=unmade)

    def _ensure_room(self, changes: TopicChanges, partitions: int) -> None:
        """Raise JournalFull, TooManyPartitions, or count these partitions, which a request asks for."""
        self.ensure_led()
        if (lacking := self._space.shortage) is not None:
            kind = NotEnoughReplicas if isinstance(lacking, NotEnoughReplicas) else JournalFull
            raise kind(f"topics and partitions can't be created now: {lacking}")
        if len(self._hosted) + changes.partitions + partitions > PARTITIONS_MAX:
            raise TooManyPartitions(
                f"{partitions} more partitions are requested, but a broker has {PARTITIONS_MAX} at most"
            )
        changes.partitions += partitions

    async def _make(self, hosted: HostedTopic, first: int, end: int) -> list[HostedPartition]:
        """Create new partitions of a topic. If one of them fails, none is left, and its error is raised."""
        # Before any is opened: whatever fails afterwards deletes their files.
        find = self._hosted.find_by_id
        hosted_already = [n for n in range(first, end) if find(hosted.topic.partition_id(n)) is not None]
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
        for path in self._hosted.paths(hosted.topic, 0):
            make_directory(path.parent)
        for number in range(first, end):
            made.append(open_partition(self._hosted.unopened(hosted, number), self._resources))

    async def _unmake(self, hosted: HostedTopic, made: list[HostedPartition], first: int) -> None:
        """Remove partitions that nobody has seen. What can't be removed now is removed at the next start."""
        for partition in made:
            partition.abandon(UnknownTopic(f"{partition.name} was never created"))
        roots = self._hosted.paths(hosted.topic, 0) if first == 0 else ()
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
        topic = self._hosted.known(name).topic
        before, partitions = topic.partitions, decide(topic.partitions)
        invariant(partitions > before, f"topic {name!r} has {before} partitions, and gets {partitions}")
        self._ensure_room(changes, partitions - before)
        changes.topics[name] = topic._replace(partitions=partitions)

    async def _make_more(self, changes: TopicChanges, stored: Sequence[Topic], pace: Pace) -> None:
        """Make the new partitions of topics. A topic that gets none is stored as it was before."""
        try:
            async for topic in pace.through(stored):
                with changes.carrying_out(topic.name):
                    hosted = self._hosted.topics[topic.name]
                    made = await self._make(hosted, hosted.topic.partitions, topic.partitions)
                    hosted.change(topic)
                    self._hosted.host(hosted, made)
                    log.info("topic %s has %d partitions now", topic.name, topic.partitions)
        finally:
            served = {topic.name: self._hosted.topics[topic.name].topic for topic in stored}
            unmade = [topic for topic in stored if served[topic.name] is not topic]
            await self._take_back(
                topics=[each._replace(partitions=served[each.name].partitions) for each in unmade]
            )

    async def _take_back(self, *, topics: Sequence[Topic] = (), deleted: Sequence[Topic] = ()) -> None:
        """Store what is so, if it is not what was meant to be. It waits for space: until then the catalogue
        would have what the broker has not.
        """
        while topics or deleted:
            try:
                stored = await self._stored.write(topics, deleted=deleted)
            except JournalFull as error:
                log.warning("topics can't be taken back yet that could not be made: %s", error)
                await asyncio.sleep(TAKE_BACK_SECONDS)
                continue
            for topic in stored:
                self._hosted.topics[topic.name].change(topic)
            return

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
                        self._hosted.change(topic)
                        log.info("topic %s changed%s", topic.name, settings_text(topic.configs))
        return changes

    def _plan_settings(self, changes: TopicChanges, name: str, decide: Decide) -> None:
        topic = self._hosted.known(name).topic
        decided = as_read(decide(topic.configs))
        check_configs(decided)
        configs = {key: value for key, value in decided.items() if value is not None}
        self._ensure_table(name, configs, changes)
        changes.topics[name] = topic._replace(configs=configs)

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
                await self._stored.write(deleted=changes.topics.values(), also=also)
                await self._remove_topics(changes, doomed, pace)
        return changes

    async def _remove_topics(
        self, changes: TopicChanges, doomed: Mapping[Asked, HostedTopic], pace: Pace
    ) -> None:
        """Stop serving deleted topics, and delete their data."""
        async for hosted in pace.through(list(doomed.values())):
            self._hosted.unhost(hosted)
        for key, hosted in doomed.items():
            with changes.carrying_out(key):
                roots = [path.parent for path in self._hosted.paths(hosted.topic, 0)]
                await self._remove_files(hosted.partitions, roots)
                log.info("topic %s deleted", hosted.topic.name)
        await self._forget([partition.id for hosted in doomed.values() for partition in hosted.partitions])
        self._stored.note_gone(doomed[key].topic for key in doomed if key not in changes.refused)
        # Still under the lock: nobody creates a topic of one of these names before the old one's offsets are
        # forgotten.
        if self.after_delete is not None:
            await self.after_delete()

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

    async def remove_leftovers(self) -> None:
        """Delete what a crash has left of deleted topics. What belongs to no topic that is known stays."""
        deleted = self._stored.deleted()
        for topic in deleted:
            for path in self._hosted.paths(topic, 0):
                await self._disk.run(delete_tree, path.parent)
        await self._forget(topic.partition_id(n) for topic in deleted for n in range(topic.partitions))
        self._stored.note_gone(deleted)
        known = [hosted.topic for hosted in self._hosted.topics.values()]
        for path in of_no_topic((self._directory.journal, self._directory.log), known):
            log.warning(
                "%s belongs to no topic that the catalogue knows, so it is left alone. If there should be "
                "one, restore the data directory from a backup; if not, move it away", path,
            )  # fmt: skip
