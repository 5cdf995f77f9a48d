"""A store of groups that forgets all when it goes, and topics whose ids are their names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from faircopy.groups.group_metadata import GroupMetadata
from faircopy.groups.offsets import CommittedOffset, Offsets
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.name import PartitionName


def place(topic: str, partition: int) -> TopicIdPartition:
    """The id of a partition."""
    return TopicIdPartition(topic.encode().ljust(16, b"\0"), partition)


class NamedTopics:
    """All topics but one that is missing, with ten partitions each."""

    def find_id(self, topic: str, partition: int) -> TopicIdPartition | None:
        return place(topic, partition) if topic != "missing" and partition < 10 else None

    def name_of(self, partition_id: TopicIdPartition) -> PartitionName | None:
        return PartitionName(partition_id.topic_id.rstrip(b"\0").decode(), partition_id.partition)


class KeptInMemory(NamedTuple):
    """A `Kept`."""

    metadata: GroupMetadata

    @property
    def protocol_type(self) -> str:
        return self.metadata.protocol_type or ""

    @property
    def has_members(self) -> bool:
        return bool(self.metadata.members)


class MemoryOffsetStore:
    """An `OffsetStore` that forgets all when it goes: the model of what a durable one does."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[TopicIdPartition, CommittedOffset]] = {}
        self._kept: dict[str, KeptInMemory] = {}
        self.pending: dict[str, set[TopicIdPartition]] = {}
        self.is_settled = True

    async def commit(self, group_id: str, offsets: Offsets) -> None:
        self._offsets.setdefault(group_id, {}).update(offsets)

    async def settle(self, group_id: str) -> bool:
        """Nothing is ever under way, unless a test says so."""
        return self.is_settled

    def fetch(self, group_id: str) -> Offsets:
        return self._offsets.get(group_id, {})

    def unstable(self, group_id: str) -> AbstractSet[TopicIdPartition]:
        return self.pending.get(group_id, set())

    async def delete(self, group_id: str, partitions: AbstractSet[TopicIdPartition] | None) -> None:
        kept = self._offsets.get(group_id, {})
        for partition in list(kept) if partitions is None else partitions:
            kept.pop(partition, None)
        if not kept:
            self._offsets.pop(group_id, None)

    def groups(self) -> Iterable[str]:
        return list(self._offsets)

    def store_group(self, group_id: str, metadata: GroupMetadata) -> asyncio.Future[None]:
        self._kept[group_id] = KeptInMemory(metadata)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def is_replicable(self, group_id: str) -> bool:
        """There are no other replicas."""
        return True

    async def replicated(self, group_id: str) -> None:
        """At once: nobody else has to have it."""

    def kept_group(self, group_id: str) -> KeptInMemory | None:
        return self._kept.get(group_id)

    def is_being_deleted(self, group_id: str) -> bool:
        """Never: a deletion is over at once."""
        return False

    def kept_groups(self) -> Iterable[tuple[str, KeptInMemory]]:
        return list(self._kept.items())

    async def delete_group(self, group_id: str) -> None:
        self._kept.pop(group_id, None)
        await self.delete(group_id, None)
