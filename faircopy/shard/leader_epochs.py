"""The leader epoch of each shard. It belongs to one life of one leader, which raises it durably first.

In a data directory from before there were shards, transaction numbers begin with its incarnation. So the
first epoch is at least that.
"""

from __future__ import annotations

from faircopy.cluster.epochs import SHARD_PREFIX, encode_epoch, epoch_in
from faircopy.cluster.store import ABSENT, ClusterStore
from faircopy.journal.identity import TopicIdPartition
from faircopy.shard.placement import Placement


class LeaderEpochs:
    """The epochs of all shards, as this process leads them."""

    def __init__(self, store: ClusterStore, placement: Placement, incarnation: int) -> None:
        self._store = store
        self._placement = placement
        self._incarnation = incarnation
        self._epochs = [0] * placement.shards

    async def raise_all(self) -> None:
        """Raise the epoch of every shard, in one durable write."""
        await self._raise(range(self._placement.shards))

    async def raise_one(self, shard: int) -> None:
        """Raise the epoch of one shard. Durable when this returns."""
        await self._raise(range(shard, shard + 1))

    async def _raise(self, shards: range) -> None:
        found = {shard: self._store.get(f"{SHARD_PREFIX}{shard}") for shard in shards}
        raised = {shard: max(epoch_in(stored) + 1, self._incarnation) for shard, stored in found.items()}
        versions = {
            f"{SHARD_PREFIX}{shard}": stored.version if stored else ABSENT for shard, stored in found.items()
        }
        records = {f"{SHARD_PREFIX}{shard}": encode_epoch(epoch) for shard, epoch in raised.items()}
        await self._store.transact(versions, records)
        for shard, epoch in raised.items():
            self._epochs[shard] = epoch

    def of_shard(self, shard: int) -> int:
        """The epoch in which a shard is led."""
        return self._epochs[shard]

    def of_partition(self, partition: TopicIdPartition) -> int:
        """The epoch in which a partition is led."""
        return self._epochs[self._placement.shard_of(partition)]
