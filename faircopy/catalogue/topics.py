"""Topics, as stored in the catalogue.

catalogue    topics/<name>         JSON {"id", "partitions", "configs", "first_producer_id"}
             deleted-topics/<id>   JSON {"name", "partitions"}, until none of the topic's files is left. Only
                                   what stands here is deleted, never what the catalogue does not know
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.journal.identity import TopicIdPartition
from faircopy.storage.paths import list_directory
from faircopy.storage.versioned_map import ABSENT, Versioned, VersionedMap

PREFIX = "topics/"
DELETED_PREFIX = "deleted-topics/"
NOTHING_ELSE: Mapping[str, bytes | None] = {}
RESERVED_NAMES = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
NAME_CHARS_MAX = 249
_LEGAL_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{NAME_CHARS_MAX}}}")
_DIRECTORY_NAME = re.compile(r".+\.([0-9a-f]{8}|[0-9a-f]{32})", re.DOTALL)
_FILE_NAME_BYTES_MAX = 255  # of Linux's file systems


class TopicError(FaircopyError):
    """A topic can't be created or changed as requested. Nothing was changed."""


class CannotMakeTopic(TopicError):
    """The operating system refused to create the topic's files."""


class InvalidTopicName(TopicError):
    """The name is not legal for a topic."""


class TopicExists(TopicError):
    """A topic of this name already exists."""


class UnknownTopic(TopicError):
    """No topic of this name exists."""


class UnknownTopicId(UnknownTopic):
    """No topic with this id exists."""


class Topic(NamedTuple):
    """One topic. `version` is the version of its record in the catalogue. Producers with ids below
    `first_producer_id` are older than the topic; 0 if that is not known.
    """

    name: str
    id: uuid.UUID
    partitions: int
    configs: dict[str, str]
    version: int
    first_producer_id: int = 0

    def partition_id(self, partition: int) -> TopicIdPartition:
        """The internal name of one of its partitions, also on disk."""
        return TopicIdPartition(self.id.bytes, partition)

    @property
    def directory_name(self) -> str:
        """The name of its directories. It is readable, and differs if the topic is deleted and recreated.

        If the topic's name is too long for a file name: its first 200 characters and the whole topic id.
        """
        name = f"{self.name}.{self.id.hex[:8]}"
        return name if len(name) <= _FILE_NAME_BYTES_MAX else f"{self.name[:200]}.{self.id.hex}"


def is_legal(name: str) -> bool:
    """Whether a topic may have this name."""
    return _LEGAL_NAME.fullmatch(name) is not None and name not in (".", "..")


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicName unless this is a legal topic name."""
    if not is_legal(name):
        raise InvalidTopicName(
            f"{name!r} can't be a topic name: use 1 to 249 letters, digits, dots, underscores and hyphens"
        )


def ensure_not_reserved(name: str) -> None:
    """Raise InvalidTopicName for names of Kafka's own topics, which mean something special to its tools."""
    if name in RESERVED_NAMES:
        raise InvalidTopicName(f"{name!r} is a name that Kafka keeps for itself: choose another")


def is_topic_directory(name: str) -> bool:
    """Whether a directory of this name may belong to a present or former topic."""
    return _DIRECTORY_NAME.fullmatch(name) is not None


def of_no_topic(roots: Iterable[Path], known: Iterable[Topic]) -> list[Path]:
    """The directories in `roots` that have the name of a topic's directory, and belong to none of these."""
    names = {topic.directory_name for topic in known}
    there = (child for root in roots for child in list_directory(root))
    return [child for child in there if is_topic_directory(child.name) and child.name not in names]


class Topics:
    """The topics of a catalogue."""

    def __init__(self, store: VersionedMap, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self._store = store
        self._new_id = new_id
        self._gone: set[str] = set()

    def load(self) -> list[Topic]:
        """All topics, by name."""
        found = self._store.scan(PREFIX)
        return [decode(key.removeprefix(PREFIX), entry.value, entry.version) for key, entry in found.items()]

    def new(
        self, name: str, partitions: int, configs: Mapping[str, str], first_producer_id: int = 0
    ) -> Topic:
        """A topic that is not stored yet. Raises InvalidTopicName, TopicExists."""
        check_topic_name(name)
        ensure_not_reserved(name)
        if self._store.get(PREFIX + name) is not None:
            raise TopicExists(f"topic {name!r} exists")
        return Topic(name, self._new_id(), partitions, dict(configs), ABSENT, first_producer_id)

    async def write(
        self,
        topics: Iterable[Topic] = (),
        *,
        deleted: Iterable[Topic] = (),
        also: Mapping[str, bytes | None] = NOTHING_ELSE,
    ) -> list[Topic]:
        """Store new and changed topics, delete others, and make the changes `also`, in one durable write.
        Returns the stored topics, with their versions. Raises Conflict, JournalFull.
        """
        stored, doomed = list(topics), list(deleted)
        over, self._gone = self._gone, set()
        changes: dict[str, bytes | None] = {PREFIX + topic.name: encode(topic) for topic in stored}
        changes |= dict.fromkeys([PREFIX + topic.name for topic in doomed] + sorted(over))
        changes |= {DELETED_PREFIX + topic.id.hex: encode_deleted(topic) for topic in doomed}
        try:
            version = await self._store.transact(
                {PREFIX + topic.name: topic.version for topic in (*stored, *doomed)}, {**changes, **also}
            )
        except FaircopyError:
            self._gone |= over
            raise
        return [topic._replace(version=version) for topic in stored]

    def deleted(self) -> list[Topic]:
        """Deleted topics of which something may be left."""
        found = self._store.scan(DELETED_PREFIX)
        return [decode_deleted(key.removeprefix(DELETED_PREFIX), entry) for key, entry in found.items()]

    def note_gone(self, topics: Iterable[Topic]) -> None:
        """Note that nothing is left of deleted topics. It is written with the next write: nobody waits."""
        self._gone |= {DELETED_PREFIX + topic.id.hex for topic in topics}


def encode(topic: Topic) -> bytes:
    """Encode a topic for the catalogue."""
    stored = {
        "id": topic.id.hex,
        "partitions": topic.partitions,
        "configs": topic.configs,
        "first_producer_id": topic.first_producer_id,
    }
    return json.dumps(stored, sort_keys=True).encode()


def encode_deleted(topic: Topic) -> bytes:
    """Encode what is to be known of a deleted topic."""
    return json.dumps({"name": topic.name, "partitions": topic.partitions}).encode()


def decode_deleted(topic_id: str, stored: Versioned) -> Topic:
    """Decode a deleted topic. Raises ValueError or KeyError."""
    known = json.loads(stored.value)
    return Topic(known["name"], uuid.UUID(topic_id), known["partitions"], {}, stored.version)


def decode(name: str, value: bytes, version: int) -> Topic:
    """Decode the topic `name` from the catalogue's value at `version`. Raises ValueError or KeyError."""
    stored = json.loads(value)
    return Topic(
        name,
        uuid.UUID(stored["id"]),
        stored["partitions"],
        stored["configs"],
        version,
        stored["first_producer_id"],
    )
