"""Committed offsets of consumer groups: what the group coordinator wants of whoever keeps them."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError
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
    """Keeps offsets; they are durable, unlike membership. Changes raise FaircopyError where none can be taken now."""

    def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> Awaitable[None]:
        """Commit, outside of any transaction. Durable when done."""

    def fetch(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """All offsets of a group, as they are now; empty for one that is not known. Not to be changed."""

    def settle(self, group_id: str) -> Awaitable[None]:
        """Wait until `fetch` tells of all transactions whose commit was acknowledged by now."""

    def unstable(self, group_id: str) -> AbstractSet[TopicPartition]:
        """Partitions for which an undecided transaction holds an offset of this group (KIP-447)."""

    def delete(self, group_id: str, partitions: Collection[TopicPartition] | None) -> Awaitable[None]:
        """Forget the offsets of these partitions, or all (None). Durable when done."""

    def groups(self) -> Iterable[str]:
        """Every group that has offsets."""


async def error_of(change: Awaitable[None]) -> ErrorCode:
    """What a client is told of a change: where the disk is full, or offsets are damaged, that it may ask again."""
    try:
        await change
    except FaircopyError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE


class MemoryOffsetStore:
    """An `OffsetStore` that forgets all when it goes: for tests, and the model of what a durable one does."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.pending: dict[str, set[TopicPartition]] = {}

    async def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> None:
        kept = self._offsets.setdefault(group_id, {})
        for topic, partition, *committed in offsets:
            kept[topic, partition] = CommittedOffset._make(committed)

    async def settle(self, group_id: str) -> None:
        """Nothing is ever under way."""

    def fetch(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._offsets.get(group_id, {})

    def unstable(self, group_id: str) -> AbstractSet[TopicPartition]:
        return self.pending.get(group_id, set())

    async def delete(self, group_id: str, partitions: Collection[TopicPartition] | None) -> None:
        kept = self._offsets.get(group_id, {})
        for partition in list(kept) if partitions is None else partitions:
            kept.pop(partition, None)
        if not kept:
            self._offsets.pop(group_id, None)

    def groups(self) -> Iterable[str]:
        return list(self._offsets)
