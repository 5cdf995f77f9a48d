"""What DeleteRecords has deleted, and plain tables have not yet: their rows must go out of files with others.

Retention moves the start of a log as well, and then rows leave a table by whole publications. So what was
deleted on purpose is noted in the cluster store, durably before the log is trimmed, and until the table has
done it:

    deleted-records/<topic id>/<partition>   the first offset that stays
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from faircopy.cluster.store import ABSENT, ClusterStore, Conflict
from faircopy.hosting.hosted_topic import HostedTopic

PREFIX = "deleted-records/"


class DeletedRecords:
    """The notes, by topic and partition. Several requests may change one at the same moment."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store

    async def note(self, hosted: HostedTopic, partition: int, first_offset: int) -> None:
        """Note that offsets before `first_offset` are about to be deleted. Of several notes at once, the one
        about the most offsets stays.
        """
        key = _key(hosted, partition)
        while True:
            found = self._store.get(key)
            if found is not None and int(found.value) >= first_offset:
                return
            with contextlib.suppress(Conflict):  # look again
                version = found.version if found is not None else ABSENT
                await self._store.transact({key: version}, {key: str(first_offset).encode()})
                return

    def of(self, hosted: HostedTopic) -> dict[int, int]:
        """The first offsets that stay, of the partitions with a note."""
        prefix = _key(hosted)
        return {
            int(key.removeprefix(prefix)): int(noted.value) for key, noted in self._store.scan(prefix).items()
        }

    async def forget(self, hosted: HostedTopic, done: Mapping[int, int]) -> None:
        """Drop the notes that say no more than what is done."""
        while versions := self._versions(hosted, done):
            with contextlib.suppress(Conflict):  # one of them says more now: look again
                await self._store.transact(versions, dict.fromkeys(versions))
                return

    def _versions(self, hosted: HostedTopic, done: Mapping[int, int]) -> dict[str, int]:
        """The versions of the notes that say no more than what is done."""
        noted = {_key(hosted, partition): first for partition, first in done.items()}
        found = {key: self._store.get(key) for key in noted}
        return {
            key: note.version
            for key, note in found.items()
            if note is not None and int(note.value) == noted[key]
        }

    def all_of(self, hosted: HostedTopic) -> dict[str, bytes | None]:
        """Changes of the store that drop all notes of a topic."""
        return dict.fromkeys(self._store.scan(_key(hosted)))


def _key(hosted: HostedTopic, partition: int | None = None) -> str:
    return f"{PREFIX}{hosted.topic.id.hex}/{'' if partition is None else partition}"
