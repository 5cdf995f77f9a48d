"""OffsetCommit, OffsetFetch and OffsetDelete: from requests to an `OffsetStore`, and back to responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from faircopy.groups.membership import Group
from faircopy.groups.offsets import CommittedOffset, Offsets, OffsetStore, TopicIds, error_of
from faircopy.groups.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.pace import Pace
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode

METADATA_BYTES_MAX = 4096
"""Most bytes of a committed offset's metadata: Kafka's default for `offset.metadata.max.bytes`."""

NO_OFFSET = CommittedOffset(-1, -1, "", 0)

Body = dict[str, Any]
TopicPartition = tuple[str, int]


class SortedOffsets(NamedTuple):
    """The partitions of an OffsetCommit or TxnOffsetCommit: those that may be committed, and errors for the
    others.
    """

    accepted: dict[TopicIdPartition, CommittedOffset]
    refused: dict[TopicPartition, ErrorCode]

    async def answer(self, topics: Iterable[Message], error: ErrorCode, pace: Pace) -> Body:
        """The response body, with `error` for partitions that have no error of their own; it may be NONE."""
        bodies = [
            {
                "name": topic.name,
                "partitions": [
                    _error_body(p.partition_index, self.refused.get((topic.name, p.partition_index), error))
                    async for p in pace.through(topic.partitions)
                ],
            }
            async for topic in pace.through(topics)
        ]
        return {"topics": bodies}


async def sort_offsets(
    topics: Iterable[Message], topic_ids: TopicIds, committed_ms: int, pace: Pace
) -> SortedOffsets:
    """Separate what may be committed from what may not. If a partition comes twice, the last counts."""
    offsets = SortedOffsets({}, {})
    async for topic in pace.over(topics):
        async for p in pace.over(topic.partitions):
            _sort(offsets, (topic.name, p.partition_index), topic_ids, p, committed_ms)
    return offsets


def _sort(
    offsets: SortedOffsets, name: TopicPartition, topic_ids: TopicIds, p: Message, committed_ms: int
) -> None:
    place, metadata = topic_ids.find_id(*name), p.committed_metadata or ""
    offsets.refused.pop(name, None)
    if place is not None:
        offsets.accepted.pop(place, None)
    if len(metadata.encode()) > METADATA_BYTES_MAX:
        offsets.refused[name] = ErrorCode.OFFSET_METADATA_TOO_LARGE
    elif place is None:
        offsets.refused[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        offsets.accepted[place] = CommittedOffset(
            p.committed_offset, p.committed_leader_epoch, metadata, committed_ms
        )


def _error_body(partition: int, error: ErrorCode) -> Body:
    return {"partition_index": partition, "error_code": error}


async def fetch_offsets(
    store: OffsetStore,
    topic_ids: TopicIds,
    group_id: str,
    topics: Sequence[Message] | None,
    require_stable: bool,
    pace: Pace,
) -> Body:
    """The answer to an OffsetFetch for one group. Without `topics`: for all partitions that it has offsets
    for.

    With `require_stable`, partitions with an undecided transaction get UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    offsets = store.fetch(group_id)
    unstable = store.unstable(group_id) if require_stable else frozenset[TopicIdPartition]()
    if topics is None:
        named = map(topic_ids.name_of, (*offsets, *(place for place in unstable if place not in offsets)))
        asked = by_topic(name for name in named if name is not None)
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in topics]
    bodies = [
        {
            "name": topic,
            "partitions": [
                _offset_body(offsets, unstable, p, topic_ids.find_id(topic, p))
                async for p in pace.over(partitions)
            ],
        }
        async for topic, partitions in pace.over(asked)
    ]
    return {"error_code": ErrorCode.NONE, "topics": bodies}


def no_offsets(topics: Sequence[Message] | None, code: ErrorCode) -> Body:
    """The answer when no offsets can be given: the error, for the group and for each partition."""
    bodies = [
        {"name": topic.name, "partitions": [_no_offset(p, code) for p in topic.partition_indexes]}
        for topic in topics or ()
    ]
    return {"error_code": code, "topics": bodies}


def _no_offset(partition: int, code: ErrorCode) -> Body:
    return {
        "partition_index": partition,
        "committed_offset": NO_OFFSET.offset,
        "committed_leader_epoch": NO_OFFSET.leader_epoch,
        "metadata": NO_OFFSET.metadata,
        "error_code": code,
    }


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Topics, each with its partition numbers."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return list(grouped.items())


def _offset_body(
    offsets: Offsets, unstable: AbstractSet[TopicIdPartition], partition: int, place: TopicIdPartition | None
) -> Body:
    is_unstable = place in unstable
    found = NO_OFFSET if place is None or is_unstable else offsets.get(place, NO_OFFSET)
    return {
        "partition_index": partition,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
        "error_code": ErrorCode.UNSTABLE_OFFSET_COMMIT if is_unstable else ErrorCode.NONE,
    }


async def asked_for(topics: Iterable[Message], pace: Pace) -> set[TopicPartition]:
    """The partitions that an OffsetDelete names."""
    return {
        (t.name, p.partition_index) async for t in pace.over(topics) async for p in pace.over(t.partitions)
    }


async def delete_offsets(
    store: OffsetStore,
    topic_ids: TopicIds,
    group: Group | None,
    request: Message,
    asked: Iterable[TopicPartition],
    pace: Pace,
) -> Body:
    """Answer an OffsetDelete. `group` is the request's group, if it has members. Durable when done."""
    members = group.members.values() if group is not None else ()
    if group is None and not store.fetch(request.group_id):
        return {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "topics": []}
    if group is not None and members and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return {"error_code": ErrorCode.NON_EMPTY_GROUP, "topics": []}
    subscribed = subscribed_topics(members)
    errors = {topic.name: _delete_error(topic.name, subscribed) for topic in request.topics}
    found = (topic_ids.find_id(*name) for name in asked if not errors[name[0]])
    free = {place for place in found if place is not None}
    if free and (error := await error_of(store.delete(request.group_id, free))):
        return {"error_code": error, "topics": []}
    bodies = [
        {
            "name": t.name,
            "partitions": [
                _error_body(p.partition_index, errors[t.name]) async for p in pace.through(t.partitions)
            ],
        }
        async for t in pace.through(request.topics)
    ]
    return {"error_code": ErrorCode.NONE, "topics": bodies}


def _delete_error(topic: str, subscribed: set[str] | None) -> ErrorCode:
    is_free = subscribed is not None and topic not in subscribed
    return ErrorCode.NONE if is_free else ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
