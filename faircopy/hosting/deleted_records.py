"""What DeleteRecords has deleted, and plain tables have not yet: their rows must go out of files with others.

Retention moves the start of a log as well, and then rows leave a table by whole publications. So what was
deleted on purpose is noted in the cluster store, durably before the log is trimmed, and until the table has
done it:

    deleted-records/<topic id>/<partition>   the first offset that stays
"""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.cluster.store import ClusterStore
from faircopy.hosting.hosted_topic import HostedTopic

PREFIX = "deleted-records/"


class DeletedRecords:
    """The notes, by topic and partition."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store

    async def note(self, hosted: HostedTopic, partition: int, first_offset: int) -> None:
        """Note that offsets before `first_offset` are about to be deleted."""
        if first_offset > self.of(hosted).get(partition, 0):
            await self._store.transact({}, {_key(hosted, partition): str(first_offset).encode()})

    def of(self, hosted: HostedTopic) -> dict[int, int]:
        """The first offsets that stay, of the partitions with a note."""
        prefix = _key(hosted)
        return {
            int(key.removeprefix(prefix)): int(noted.value) for key, noted in self._store.scan(prefix).items()
        }

    async def forget(self, hosted: HostedTopic, done: Mapping[int, int]) -> None:
        """Drop the notes that say no more than what is done."""
        noted = self.of(hosted)
        gone = [partition for partition, first in done.items() if noted.get(partition) == first]
        if gone:
            await self._store.transact({}, {_key(hosted, partition): None for partition in gone})

    def all_of(self, hosted: HostedTopic) -> dict[str, bytes | None]:
        """Changes of the store that drop all notes of a topic."""
        return dict.fromkeys(self._store.scan(_key(hosted)))


def _key(hosted: HostedTopic, partition: int | None = None) -> str:
    return f"{PREFIX}{hosted.topic.id.hex}/{'' if partition is None else partition}"
