"""The partitions that the tests of this folder speak of."""

from __future__ import annotations

from faircopy.journal.identity import TopicIdPartition

TOPIC_ID = bytes(15) + b"\7"


def participant(number: int) -> TopicIdPartition:
    """A partition of the one topic."""
    return TopicIdPartition(TOPIC_ID, number)


def participants(*numbers: int) -> list[TopicIdPartition]:
    """Partitions of the one topic."""
    return [participant(number) for number in numbers]
