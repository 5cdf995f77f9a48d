"""The identity of a journal: the topic's id and the partition's number, never a name.

A topic that is deleted and created again has another id. The identity in an entry, in the state store or in a
segment's header always means this one incarnation. On disk, 20 bytes:

     0  topic id   16 bytes  a random UUID; for the broker's own journals a letter and zeros, which no UUID is
    16  partition  u32, big-endian

In JSON, [topic id in hexadecimal, partition].
"""

from __future__ import annotations

from typing import NamedTuple, Self


class TopicIdPartition(NamedTuple):
    """One partition of one incarnation of a topic. Ids are bytes, since they are often used as keys."""

    topic_id: bytes
    partition: int

    @property
    def identity(self) -> bytes:
        """The 20 bytes that identify it on disk."""
        return self.topic_id + self.partition.to_bytes(4, "big")

    @property
    def listed(self) -> tuple[str, int]:
        """Its form in JSON."""
        return self.topic_id.hex(), self.partition

    @classmethod
    def read(cls, topic_id: str, partition: int) -> Self:
        """The inverse of `listed`."""
        return cls(bytes.fromhex(topic_id), partition)

    def __str__(self) -> str:
        return f"{self.topic_id.hex()}-{self.partition}"


def internal_topic_id(letter: bytes) -> bytes:
    """The id of journals that belong to no topic."""
    return letter + bytes(15)


CATALOGUE_TOPIC_ID = internal_topic_id(b"C")
METADATA_TOPIC_ID = internal_topic_id(b"J")
OFFSETS_TOPIC_ID = internal_topic_id(b"O")
