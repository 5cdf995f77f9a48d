"""The partitions that the tests of this folder speak of."""

from __future__ import annotations

from uuid import UUID

from faircopy.broker.transactions.table import listed
from faircopy.journal.identity import TopicIdPartition

TOPIC_ID = UUID(int=7)


def participant(number: int) -> TopicIdPartition:
    """A partition of the one topic."""
    return TopicIdPartition(TOPIC_ID, number)


def participants(*numbers: int) -> list[list[str | int]]:
    """Partitions of the one topic, as payloads list them."""
    return [listed(participant(number)) for number in numbers]
