"""Which shard keeps what. Placement is arithmetic on what never changes, so none of it has to be stored.

J-k and offsets partition k are in shard k mod n. Partition p of a topic is in shard (murmur2(topic id) + p)
mod n. That spreads the partitions of a topic, and also topics of one partition.

Pure.
"""

from __future__ import annotations

from functools import lru_cache

from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.transactions.transaction import group_of
from faircopy.wire.murmur2 import murmur2, partition_for

REMEMBERED_NAMES = 1024
"""How many names' hashes are kept. Clients choose the names, and each may be 32 KiB long."""


class Placement:
    """The placement in a data directory of this shape."""

    def __init__(self, shards: int, metadata_journals: int, offsets_partitions: int) -> None:
        self.shards = shards
        self.metadata_journals = metadata_journals
        self.offsets_partitions = offsets_partitions
        self.metadata_journal_of = lru_cache(REMEMBERED_NAMES)(self._metadata_journal_of)
        self.offsets_partition_of = lru_cache(REMEMBERED_NAMES)(self._offsets_partition_of)
        self.shard_of_transactions = lru_cache(REMEMBERED_NAMES)(self._shard_of_transactions)

    def _metadata_journal_of(self, transactional_id: str) -> int:
        """fn(G): the number k of the metadata journal that keeps a transactional id's transactions."""
        return partition_for(group_of(transactional_id).encode(), self.metadata_journals)

    def _offsets_partition_of(self, group: str) -> int:
        """The number of the offsets partition that keeps a group."""
        return partition_for(group.encode(), self.offsets_partitions)

    def metadata_journals_in(self, shard: int) -> range:
        """The metadata journals that a shard keeps."""
        return range(shard, self.metadata_journals, self.shards)

    def offsets_partitions_in(self, shard: int) -> range:
        """The offsets partitions that a shard keeps."""
        return range(shard, self.offsets_partitions, self.shards)

    def _shard_of_transactions(self, transactional_id: str) -> int:
        """The shard whose coordinator is responsible for a transactional id."""
        return self.metadata_journal_of(transactional_id) % self.shards

    def shard_of_group(self, group: str) -> int:
        """The shard whose coordinator is responsible for a consumer group."""
        return self.offsets_partition_of(group) % self.shards

    def shard_of(self, partition: TopicIdPartition) -> int:
        """The shard that keeps a partition of a topic, or of group offsets."""
        if partition.topic_id == OFFSETS_TOPIC_ID:
            return partition.partition % self.shards
        return (murmur2(partition.topic_id) + partition.partition) % self.shards
