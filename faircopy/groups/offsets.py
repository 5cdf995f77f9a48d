"""What lasts of consumer groups, offsets and members: what the group coordinator wants of whoever keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError
from faircopy.groups.group_metadata import GroupMetadata
from faircopy.wire.error_codes import ErrorCode

TopicPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    """What a group committed for a partition: the next offset to read. `leader_epoch` is -1 if not known."""

    offset: int
    leader_epoch: int
    metadata: str


class OffsetToCommit(NamedTuple):
    """One partition's part of an offset commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class OffsetStore(Protocol):
    """Keeps groups. Changes raise FaircopyError where none can be taken now."""

    def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> Awaitable[None]:
        """Commit, outside of any transaction. Durable when done."""

    def fetch(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """All offsets of a group, as they are now; empty for one that is not known. Not to be changed."""

    def settle(self, group_id: str) -> Awaitable[bool]:
        """Wait until `fetch` tells of all transactions whose commit was acknowledged by now, for a bounded time: false
        if it does not yet.
        """

    def unstable(self, group_id: str) -> AbstractSet[TopicPartition]:
        """Partitions for which an undecided transaction holds an offset of this group (KIP-447)."""

    def delete(self, group_id: str, partitions: AbstractSet[TopicPartition] | None) -> Awaitable[None]:
        """Forget the offsets of these partitions, or all (None). Durable when done."""

    def groups(self) -> Iterable[str]:
        """Every group that has offsets."""

    def store_group(self, group_id: str, metadata: GroupMetadata) -> asyncio.Future[None]:
        """Store who is in a group, in the order of these calls. Durable when done."""

    def kept_group(self, group_id: str) -> Kept | None:
        """What was stored last of a group, and not deleted."""

    def is_being_deleted(self, group_id: str) -> bool:
        """Whether a deletion is on its way to disk: who comes now comes to another group."""

    def kept_groups(self) -> Iterable[tuple[str, Kept]]:
        """All that are stored."""

    def delete_group(self, group_id: str) -> Awaitable[None]:
        """Forget a group and its offsets. Durable when done."""


class Kept(Protocol):
    """A group that is stored."""

    @property
    def protocol_type(self) -> str: ...

    @property
    def has_members(self) -> bool: ...

    @property
    def metadata(self) -> GroupMetadata:
        """All of it, decoded each time."""


async def error_of(change: Awaitable[None]) -> ErrorCode:
    """What a client is told of a change: where the disk is full, or offsets are damaged, that it may ask again."""
    try:
        await change
    except FaircopyError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE


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
    """An `OffsetStore` that forgets all when it goes: for tests, and the model of what a durable one does."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._kept: dict[str, KeptInMemory] = {}
        self.pending: dict[str, set[TopicPartition]] = {}
        self.is_settled = True

    async def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> None:
        kept = self._offsets.setdefault(group_id, {})
        for topic, partition, *committed in offsets:
            kept[topic, partition] = CommittedOffset._make(committed)

    async def settle(self, group_id: str) -> bool:
        """Nothing is ever under way, unless a test says so."""
        return self.is_settled

    def fetch(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._offsets.get(group_id, {})

    def unstable(self, group_id: str) -> AbstractSet[TopicPartition]:
        return self.pending.get(group_id, set())

    async def delete(self, group_id: str, partitions: AbstractSet[TopicPartition] | None) -> None:
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
