"""Which journal is which: by the topic's id and the partition's number, never by a name.

A topic that is deleted and made again has another id. What names a partition in an entry, in the state store or in a
segment's header means that one incarnation for ever. On disk, 20 bytes:

     0  topic id   16 bytes  a random UUID; of the broker's own journals a letter and zeros, which no UUID is
    16  partition  u32, big-endian
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

IDENTITY_BYTES = 20


class TopicIdPartition(NamedTuple):
    """One partition of one incarnation of a topic."""

    topic_id: UUID
    partition: int

    @property
    def identity(self) -> bytes:
        """The 20 bytes that name it on disk."""
        return self.topic_id.bytes + self.partition.to_bytes(4, "big")

    def __str__(self) -> str:
        return f"{self.topic_id.hex}-{self.partition}"


def internal_topic_id(letter: bytes) -> UUID:
    """The id of journals that belong to no topic."""
    return UUID(bytes=letter + bytes(15))


METADATA_TOPIC_ID = internal_topic_id(b"J")
OFFSETS_TOPIC_ID = internal_topic_id(b"O")
