"""What a partition is called by people, and on the wire. Inside, a partition is a `TopicIdPartition`."""

from __future__ import annotations

from typing import NamedTuple


class PartitionName(NamedTuple):
    """Topic name and partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
