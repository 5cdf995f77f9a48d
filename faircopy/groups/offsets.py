"""What lasts of consumer groups, offsets and members: what the group coordinator wants of whoever keeps them."""

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
    """What a group committed for a partition: the next offset to read. `leader_epoch` is -1 if it is not known;
    `committed_ms` is the steady clock's time.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


Offsets = Mapping[TopicIdPartition, CommittedOffset]

OffsetChanges = Mapping[TopicIdPartition, CommittedOffset | None]
"""What is committed, or with None taken away."""


class TopicIds(Protocol):
    """The ids of topics, and their names: inside, a partition is known by its topic's id."""

    def find_id(self, topic: str, partition: int) -> TopicIdPartition | None:
        """The partition that has this name now; None if there is none."""

    def name_of(self, partition_id: TopicIdPartition) -> PartitionName | None:
        """Its name; None if its topic is deleted."""


class OffsetStore(Protocol):
    """Keeps groups. Changes raise FaircopyError where none can be taken now."""

    def commit(self, group_id: str, offsets: Offsets) -> Awaitable[None]:
        """Commit, outside of any transaction. Durable when done."""

    def fetch(self, group_id: str) -> Offsets:
        """All offsets of a group, as they are now, for topics that there are; empty for one that is not known."""

    def settle(self, group_id: str) -> Awaitable[bool]:
        """Wait until `fetch` tells of all transactions whose commit was acknowledged by now, for a bounded time: false
        if it does not yet.
        """

    def unstable(self, group_id: str) -> AbstractSet[TopicIdPartition]:
        """Partitions for which an undecided transaction holds an offset of this group (KIP-447)."""

    def delete(self, group_id: str, partitions: AbstractSet[TopicIdPartition] | None) -> Awaitable[None]:
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
    def protocol_type(self) -> str:
        """Such as "consumer"; empty for a group that never had members."""

    @property
    def has_members(self) -> bool:
        """Whether members were stored with it."""

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
