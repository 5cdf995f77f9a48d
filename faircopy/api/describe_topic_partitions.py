"""DescribeTopicPartitions: Metadata of topics in pages, each with at most so many partitions (KIP-966)."""

from __future__ import annotations

from collections.abc import Collection

from faircopy.api.metadata import describe, missing
from faircopy.catalogue.topics import InvalidTopicName, check_topic_name
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.operations import ON_TOPICS
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 75 DescribeTopicPartitions 0 flexible 0+
  request
    topics                            []
        name                          string
    response_partition_limit          int32             = 2000
    cursor                            {}?               = null
        topic_name                    string
        partition_index               int32
  response
    throttle_time_ms                  int32             = 0
    topics                            []
        error_code                    int16
        name                          string?
        topic_id                      uuid              = zero
        is_internal                   bool              = false
        partitions                    []
            error_code                int16
            partition_index           int32
            leader_id                 int32
            leader_epoch              int32             = -1
            replica_nodes             []int32
            isr_nodes                 []int32
            eligible_leader_replicas  []int32?          = null
            last_known_elr            []int32?          = null
            offline_replicas          []int32           = []
        topic_authorized_operations   int32             = -2147483648
    next_cursor                       {}?               = null
        topic_name                    string
        partition_index               int32
""")
PARTITIONS_MAX = 2_000
"""Of one page, as in Kafka (max.request.partition.size.limit)."""
NAMES_AT_ONCE = 1_000


async def describe_topic_partitions(request: Message, context: Context) -> Body:
    """DescribeTopicPartitions of the named topics, or of all, in the order of their names."""
    named = {asked.name for asked in request.topics}
    begin = request.cursor
    if not is_valid(request, named):
        refused = named or ({begin.topic_name} if begin is not None else {None})
        return {"topics": [missing(name, ErrorCode.INVALID_REQUEST) for name in refused]}
    topics: list[Body] = []
    room = min(request.response_partition_limit, PARTITIONS_MAX)
    async for name in context.pace.over(await in_order(named or context.parts.hosted.topics, context)):
        if begin is not None and name < begin.topic_name:
            continue
        if not room:
            return page(topics, name, 0)
        first = begin.partition_index if begin is not None and name == begin.topic_name else 0
        hosted = context.parts.hosted.topics.get(name)
        if hosted is not None:
            numbers = range(len(hosted.partitions))[first:][:room]
            topics.append(described(hosted, context.parts.settings.node_id, numbers))
            if numbers.stop < len(hosted.partitions) and numbers:
                return page(topics, name, numbers.stop)
            room -= len(numbers)
        elif named:
            topics.append(missing(name, code_of_missing(name)))
    return {"topics": topics}


async def in_order(names: Collection[str], context: Context) -> list[str]:
    """Names, sorted: many of them on a thread, since that takes long."""
    if len(names) <= NAMES_AT_ONCE:
        return sorted(names)
    return await context.parts.large_requests.run(sorted, list(names))


def is_valid(request: Message, named: set[str]) -> bool:
    """Whether there can be such a page, as in Kafka: a cursor is at one of the topics that are asked for."""
    cursor = request.cursor
    is_somewhere = cursor is None or (
        cursor.partition_index >= 0 and (not named or cursor.topic_name in named)
    )
    return is_somewhere and bool(request.response_partition_limit > 0)


def described(hosted: HostedTopic, node_id: int, numbers: range) -> Body:
    """A topic with some of its partitions."""
    row = describe(hosted, node_id, numbers)
    for partition in row["partitions"]:
        partition |= {"eligible_leader_replicas": [], "last_known_elr": []}
    return row | {"topic_authorized_operations": ON_TOPICS}


def code_of_missing(name: str) -> ErrorCode:
    """Why there is no topic of this name."""
    try:
        check_topic_name(name)
    except InvalidTopicName:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def page(topics: list[Body], name: str, number: int) -> Body:
    """The response, and where the next one begins."""
    return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": number}}


ROUTE = Route(SCHEMA, describe_topic_partitions)
