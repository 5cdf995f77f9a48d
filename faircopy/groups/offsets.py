"""The durable part of consumer groups, offsets and members: what the group coordinator needs of its store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError
from faircopy.groups.group_metadata import GroupMetadata
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.name import PartitionName
from faircopy.wire.error_codes import ErrorCode


class CommittedOffset(NamedTuple):
    """A group's committed offset for a partition: the next offset to read. `leader_epoch` is -1 if it is not
    known. `committed_ms` is by the steady clock.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


Offsets = Mapping[TopicIdPartition, CommittedOffset]

OffsetChanges = Mapping[TopicIdPartition, CommittedOffset | None]
"""What is committed; None deletes a committed offset."""


class TopicIds(Protocol):
    """Maps names to ids, and back. Internally, a partition is known by its topic's id."""

    def find_id(self, topic: str, partition: int) -> TopicIdPartition | None:
        """The partition that has this name now; None if there is none."""

    def name_of(self, partition_id: TopicIdPartition) -> PartitionName | None:
        """The partition's name; None if its topic is deleted."""


class OffsetStore(Protocol):
    """Stores groups. Changes raise FaircopyError if none can be accepted now."""

    def commit(self, group_id: str, offsets: Offsets) -> Awaitable[None]:
        """Commit offsets outside of any transaction. Durable when done."""

    def fetch(self, group_id: str) -> Offsets:
        """All present offsets of a group, for topics that exist. Empty if the group is unknown."""

    def settle(self, group_id: str) -> Awaitable[bool]:
        """Wait, for a bounded time, until `fetch` includes all transactions whose commit was acknowledged by
        now. False if it does not yet.
        """

    def unstable(self, group_id: str) -> AbstractSet[TopicIdPartition]:
        """Partitions for which an undecided transaction holds an offset of this group (KIP-447)."""

    def delete(self, group_id: str, partitions: AbstractSet[TopicIdPartition] | None) -> Awaitable[None]:
        """Forget the offsets of these partitions, or all (None). Durable when done."""

    def groups(self) -> Iterable[str]:
        """Every group that has offsets."""

    def store_group(self, group_id: str, metadata: GroupMetadata) -> asyncio.Future[None]:
        """Store who is in a group, in the order of the calls. Durable when done."""

    def is_replicable(self, group_id: str) -> bool:
        """Whether other replicas, if there are any, could get what is stored for a group now."""

    def replicated(self, group_id: str) -> Awaitable[None]:
        """Wait until other replicas, if there are any, have what was stored for a group by now."""

    def kept_group(self, group_id: str) -> Kept | None:
        """What was last stored for a group; None if that was deleted."""

    def is_being_deleted(self, group_id: str) -> bool:
        """Whether a deletion is on its way to disk: whoever joins now joins a new group."""

    def kept_groups(self) -> Iterable[tuple[str, Kept]]:
        """All stored groups."""

    def delete_group(self, group_id: str) -> Awaitable[None]:
        """Forget a group and its offsets. Durable when done."""


class Kept(Protocol):
    """A stored group."""

    @property
    def protocol_type(self) -> str:
        """Such as "consumer"; empty for a group that never had members."""

    @property
    def has_members(self) -> bool:
        """Whether members were stored with it."""

    @property
    def metadata(self) -> GroupMetadata:
        """The whole metadata, decoded on each call."""


async def error_of(change: Awaitable[None]) -> ErrorCode:
    """The code for the outcome of a change. On a full disk, or for damaged offsets, clients may ask again."""
    try:
        await change
    except FaircopyError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE
