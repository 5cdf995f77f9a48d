"""The topics and partitions that this broker hosts, which `administration` changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from faircopy.catalogue.topics import Topic, Topics, UnknownTopic, UnknownTopicId
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.hosting.stopping import Stopping
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import PartitionResources, Unopened
from faircopy.partition.opening_many import open_many
from faircopy.settings.table import Settings
from faircopy.storage.data_directory import DataDirectory


class HostedTopics:
    """All topics of this broker, by name, and their partitions. `tables_are_off`: nobody here can write plain
    tables.
    """

    def __init__(
        self,
        stored: Topics,
        directory: DataDirectory,
        settings: Settings,
        resources: PartitionResources,
        stopping: Stopping,
        leader_epoch_of: Callable[[TopicIdPartition], int],
    ) -> None:
        """`leader_epoch_of` gives the epoch under which this broker leads a partition, on any thread."""
        self._stored = stored
        self._directory = directory
        self._settings = settings
        self._resources = resources
        self._stopping = stopping
        self._leader_epoch_of = leader_epoch_of
        self.topics: dict[str, HostedTopic] = {}
        self._partitions: dict[tuple[str, int], HostedPartition] = {}
        self._by_id: dict[TopicIdPartition, HostedPartition] = {}
        self.tables_are_off = False
        self.on_change: Callable[[HostedTopic, bool], None] = lambda _topic, _exists: None

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

    @property
    def is_shared(self) -> bool:
        """Whether other replicas keep these topics, too."""
        return self._resources.shipping.is_shared

    def __len__(self) -> int:
        """The number of partitions."""
        return len(self._partitions)

    def partitions(self) -> Iterator[HostedPartition]:
        """All partitions."""
        return iter(list(self._partitions.values()))

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

    # -- opening ---------------------------------------------------------------------------------------------

    async def open_all(self) -> None:
        """Open and recover all partitions, several at a time: they wait for the disk, not for one another. A
        damaged one is stopped, and the others serve.

        Raises NoSpace: a partition stopped for lack of space would stay stopped when there is space again.
        """
        topics = [HostedTopic(topic, self._settings) for topic in self._stored.load()]
        places = ((hosted, number) for hosted in topics for number in range(hosted.topic.partitions))
        found = iter(await self._open_many(places))
        for hosted in topics:
            self.host(hosted, [next(found) for _ in range(hosted.topic.partitions)])

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

    def host(self, hosted: HostedTopic, partitions: list[HostedPartition]) -> None:
        """Serve a topic, or more partitions of one."""
        for partition in partitions:
            self._stopping.tell_of_failure(partition)
            partition.count_drafts()
            if partition.failure is None:
                self._resources.shipping.lead(partition.journal)
        hosted.partitions.extend(partitions)
        hosted.change(hosted.topic)  # settings may have changed meanwhile
        self.topics[hosted.topic.name] = hosted
        for partition in partitions:
            self._partitions[partition.name] = partition
            self._by_id[partition.id] = partition
        self.on_change(hosted, True)

    async def _open_many(self, places: Iterable[tuple[HostedTopic, int]]) -> list[HostedPartition]:
        return await open_many([self.unopened(*place) for place in places], self._resources)

    def unopened(self, hosted: HostedTopic, number: int) -> Unopened:
        """What there is to open of a partition."""
        partition_id = hosted.topic.partition_id(number)
        return Unopened(
            PartitionName(hosted.topic.name, number),
            partition_id,
            *self.paths(hosted.topic, number),
            int(hosted.config("segment.bytes")),
            self._leader_epoch_of(partition_id),
        )

    def stop(self, partition: HostedPartition, error: FaircopyError) -> None:
        """Stop a damaged partition, and log why (I9)."""
        self._stopping.stop(partition, error)

    def paths(self, topic: Topic, number: int) -> tuple[Path, Path]:
        """The directories of a partition's journal and log."""
        directory = Path(topic.directory_name) / str(number)
        return self._directory.journal / directory, self._directory.log / directory

    # -- changing --------------------------------------------------------------------------------------------

    def settings_changed(self) -> None:
        """Note that the broker's settings changed: some are defaults of topics."""
        for hosted in self.topics.values():
            hosted.change(hosted.topic)
            self.on_change(hosted, True)

    def change(self, topic: Topic) -> None:
        """Serve a topic with changed settings."""
        hosted = self.topics[topic.name]
        hosted.change(topic)
        self.on_change(hosted, True)

    def unhost(self, hosted: HostedTopic) -> None:
        """Serve a topic no longer, since it is deleted."""
        del self.topics[hosted.topic.name]
        for partition in hosted.partitions:
            del self._partitions[partition.name], self._by_id[partition.id]
            self._resources.shipping.forget(partition.identity)
            partition.abandon(UnknownTopic(f"topic {hosted.topic.name!r} is deleted"))
            partition.log.notify()
        self.on_change(hosted, False)
