"""The leader epoch of each shard. It belongs to one life of one leader, which raises it durably first.

Transaction numbers begin with the epoch of their shard, ranks with the incarnation. So an epoch is at least
the incarnation that raises it.
"""

from __future__ import annotations

from faircopy.errors import FaircopyError
from faircopy.journal.identity import TopicIdPartition
from faircopy.shard.placement import Placement
from faircopy.storage.epochs import leader_epoch, note_leader_epochs
from faircopy.storage.local_notes import LocalNotes


class EpochIsOfTheSet(FaircopyError):
    """In a replica set, no shard has an epoch of its own."""


class LeaderEpochs:
    """The epochs of all shards, as this process leads them."""

    def __init__(
        self, notes: LocalNotes, placement: Placement, incarnation: int, *, is_of_a_set: bool = False
    ) -> None:
        """`incarnation`: of this process; in a replica set, the epoch in which it was elected."""
        self._notes = notes
        self._placement = placement
        self._incarnation = incarnation
        self._is_of_a_set = is_of_a_set
        self._epochs = [0] * placement.shards

    async def raise_all(self) -> None:
        """Raise the epoch of every shard, in one durable write."""
        await self._raise(range(self._placement.shards))

    def ensure_own(self) -> None:
        """Raise EpochIsOfTheSet if shards may not have epochs of their own."""
        if self._is_of_a_set:
            raise EpochIsOfTheSet("in a replica set, no shard is led anew: only an election makes an epoch")

    async def raise_one(self, shard: int) -> None:
        """Raise the epoch of one shard. Durable when this returns. Raises EpochIsOfTheSet."""
        self.ensure_own()
        await self._raise(range(shard, shard + 1))

    async def _raise(self, shards: range) -> None:
        raised = {shard: max(leader_epoch(self._notes, shard) + 1, self._incarnation) for shard in shards}
        await note_leader_epochs(self._notes, raised)
        for shard, epoch in raised.items():
            self._epochs[shard] = epoch

    def of_shard(self, shard: int) -> int:
        """The epoch in which a shard is led."""
        return self._epochs[shard]

    def of_partition(self, partition: TopicIdPartition) -> int:
        """The epoch in which a partition is led."""
        return self._epochs[self._placement.shard_of(partition)]
