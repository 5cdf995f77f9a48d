"""The catalogue at a follower: it says where the files of each journal belong, and which are to be deleted.

Paths come from whatever was copied of the catalogue: the leader ships no journal before its topic is durable.
A topic's files are deleted only when its deletion is durable in the set (B11).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from faircopy.catalogue.journal import CATALOGUE_IDENTITY, catalogue_directory, change_in, checkpointed
from faircopy.catalogue.topics import DELETED_PREFIX, Topic, Topics, decode_deleted
from faircopy.errors import FaircopyError
from faircopy.groups.offsets_journals import OFFSETS_DIRECTORY
from faircopy.journal.checkpoint import decode_journal_checkpoint
from faircopy.journal.identity import METADATA_TOPIC_ID, OFFSETS_TOPIC_ID
from faircopy.journal.journal import Journal
from faircopy.journal.reading import read_entries
from faircopy.shard.shard import METADATA_DIRECTORY
from faircopy.storage.state_store import StateStore
from faircopy.storage.versioned_map import Versioned

TOPIC_ID_BYTES = 16


class UnknownJournal(FaircopyError):
    """The catalogue has no topic that a journal belongs to."""


class Deletion(NamedTuple):
    """A topic that is deleted by an entry of the catalogue, which ends at position `end`."""

    end: int
    topic: Topic


class CopiedCatalogue:
    """The fold of what was copied. `journals`: the directory of all journals."""

    def __init__(self, journals: Path, store: StateStore) -> None:
        self._journals = journals
        self._journal: Journal | None = None
        self._entries = checkpointed(store)
        self._position = decode_journal_checkpoint(store.get("checkpoints", CATALOGUE_IDENTITY)).position
        self._deletions = deque(Deletion(0, topic) for topic in Topics(self).deleted())
        self._directories: dict[bytes, str] = {}

    def follow(self, journal: Journal) -> None:
        """The catalogue's journal is open."""
        self._journal = journal

    def path_of(self, identity: bytes) -> Path:
        """The directory of a journal. Raises UnknownJournal."""
        topic_id, number = identity[:TOPIC_ID_BYTES], int.from_bytes(identity[TOPIC_ID_BYTES:], "big")
        if identity == CATALOGUE_IDENTITY:
            return catalogue_directory(self._journals)
        if topic_id == METADATA_TOPIC_ID:
            return self._journals / METADATA_DIRECTORY / str(number)
        if topic_id == OFFSETS_TOPIC_ID:
            return self._journals / OFFSETS_DIRECTORY / str(number)
        if topic_id not in self._directories:
            self._read_on()
        if topic_id not in self._directories:
            raise UnknownJournal(f"the catalogue has no topic with id {topic_id.hex()}, whose journal comes")
        return self._journals / self._directories[topic_id] / str(number)

    def take_deleted(self, durable: int) -> list[Topic]:
        """The topics whose deletion is durable by now, each once in a life."""
        self._read_on()
        deleted = []
        while self._deletions and self._deletions[0].end <= durable:
            deleted.append(self._deletions.popleft().topic)
        return deleted

    def _read_on(self) -> None:
        """Fold what was written meanwhile."""
        if self._journal is None:
            return
        # A thread makes the file of a segment, after the first entry for it was appended.
        made = [each for each in self._journal.segments if each.file is not None]
        for recovered in read_entries(made, self._position):
            change = change_in(recovered, self._entries)
            self._entries.apply(change.changes, recovered.entry.position)
            self._position = recovered.entry.end
            self._note_deletions(change.changes)
        self._directories = {topic.id.bytes: topic.directory_name for topic in Topics(self).load()}

    def _note_deletions(self, changes: Mapping[str, bytes | None]) -> None:
        for key, value in changes.items():
            if key.startswith(DELETED_PREFIX) and value is not None:
                deleted = decode_deleted(key.removeprefix(DELETED_PREFIX), Versioned(value, 0))
                self._deletions.append(Deletion(self._position, deleted))

    # -- as a map --------------------------------------------------------------------------------------------

    def get(self, key: str) -> Versioned | None:
        """What was copied of a key."""
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """What was copied of all keys with a prefix."""
        return self._entries.scan(prefix)

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> int:
        """A follower writes nothing of its own."""
        raise NotImplementedError("a follower's catalogue is the leader's")
