"""Topics, as the cluster store keeps them: `topics/<name>` -> JSON {"id", "partitions", "configs"}."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

from faircopy.cluster.store import ABSENT, ClusterStore
from faircopy.errors import FaircopyError

PREFIX = "topics/"
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicError(FaircopyError):
    """A topic can't be made or changed as asked; nothing was changed."""


class InvalidTopicName(TopicError):
    """The name can't be a topic's."""


class TopicExists(TopicError):
    """There is a topic of this name."""


class UnknownTopic(TopicError):
    """There is no topic of this name."""


class Topic(NamedTuple):
    """One topic. `version` is that of its record in the store."""

    name: str
    id: uuid.UUID
    partitions: int
    configs: dict[str, str]
    version: int

    def identity(self, partition: int) -> bytes:
        """The 20 bytes that name one of its partitions on disk."""
        return self.id.bytes + partition.to_bytes(4, "big")

    @property
    def directory_name(self) -> str:
        """A name for its directories: readable, and another one if the topic is deleted and made again."""
        return f"{self.name}.{self.id.hex[:8]}"


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicName unless this may be a topic's name."""
    if not _LEGAL_NAME.fullmatch(name) or name in (".", ".."):
        raise InvalidTopicName(
            f"{name!r} can't be a topic name: use 1 to 249 letters, digits, dots, underscores and hyphens"
        )


class Topics:
    """The topics of a cluster."""

    def __init__(self, store: ClusterStore, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self._store = store
        self._new_id = new_id

    def load(self) -> list[Topic]:
        """All topics, by name."""
        found = self._store.scan(PREFIX)
        return [decode(key.removeprefix(PREFIX), entry.value, entry.version) for key, entry in found.items()]

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Make a topic. Raises InvalidTopicName, TopicExists (Conflict if two are made at once)."""
        check_topic_name(name)
        if self._store.get(PREFIX + name) is not None:
            raise TopicExists(f"topic {name!r} exists")
        topic = Topic(name, self._new_id(), partitions, dict(configs), version=1)
        await self._store.transact({PREFIX + name: ABSENT}, {PREFIX + name: encode(topic)})
        return topic

    async def replace(self, topic: Topic) -> Topic:
        """Store a topic with changed partitions or configs. Raises Conflict."""
        await self._store.transact({PREFIX + topic.name: topic.version}, {PREFIX + topic.name: encode(topic)})
        return topic._replace(version=topic.version + 1)

    async def delete(self, topic: Topic) -> None:
        """Take a topic away. Raises Conflict."""
        await self._store.transact({PREFIX + topic.name: topic.version}, {PREFIX + topic.name: None})


def encode(topic: Topic) -> bytes:
    stored = {"id": topic.id.hex, "partitions": topic.partitions, "configs": topic.configs}
    return json.dumps(stored, sort_keys=True).encode()


def decode(name: str, value: bytes, version: int) -> Topic:
    stored = json.loads(value)
    return Topic(name, uuid.UUID(stored["id"]), stored["partitions"], stored["configs"], version)
