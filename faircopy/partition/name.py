"""The name of a partition for people and on the wire. Internally, a partition is a `TopicIdPartition`."""

from __future__ import annotations

from typing import NamedTuple


class PartitionName(NamedTuple):
    """A topic's name and a partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
