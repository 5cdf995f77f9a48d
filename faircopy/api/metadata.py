"""Metadata: brokers, topics, and the leaders of partitions.

A topic that is requested by name is created if settings and client allow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial

from faircopy.catalogue.topics import InvalidTopicName, is_legal
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.topic_changes import NewTopic
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.operations import ON_TOPICS, on_the_cluster
from faircopy.wire.schema import UUID_ZERO, Schema

SCHEMA = Schema("""
api 3 Metadata 0-13 flexible 9+
  request
    topics                                 []?1+
        topic_id                           uuid       10+    = zero
        name                               string?10+
    allow_auto_topic_creation              bool       4+     = true
    include_cluster_authorized_operations  bool       8-10   = false
    include_topic_authorized_operations    bool       8+     = false
  response
    throttle_time_ms                       int32      3+     = 0
    brokers                                []
        node_id                            int32
        host                               string
        port                               int32
        rack                               string?    1+     = null
    cluster_id                             string?    2+     = null
    controller_id                          int32      1+     = -1
    topics                                 []
        error_code                         int16
        name                               string?12+
        topic_id                           uuid       10+    = zero
        is_internal                        bool       1+     = false
        partitions                         []
            error_code                     int16
            partition_index                int32
            leader_id                      int32
            leader_epoch                   int32      7+     = -1
            replica_nodes                  []int32
            isr_nodes                      []int32
            offline_replicas               []int32    5+     = []
        topic_authorized_operations        int32      8+     = -2147483648
    cluster_authorized_operations          int32      8-10   = -2147483648
    error_code                             int16      13+    = 0
""")


NULLABLE_NAME_SINCE = 12
NOBODY = -1


async def metadata(request: Message, context: Context) -> Body:
    """Metadata. A topic that is requested by name is created if settings and client allow."""
    node_id = context.parts.settings.node_id
    if request.topics is None or (context.version == 0 and not request.topics):
        every = list(context.parts.hosted.topics.values())
        topics = [describe(hosted, node_id) async for hosted in context.pace.over(every)]
    else:
        may_create = request.allow_auto_topic_creation and context.parts.settings.auto_create_topics
        # Before version 12, a topic requested by its id has an empty name in the answer, not a null one.
        nameless = None if context.version >= NULLABLE_NAME_SINCE else ""
        # As Kafka does, answer duplicates once: so a response is never larger than all metadata.
        different = {(asked.topic_id, asked.name): asked for asked in request.topics}
        refused = await create_missing(context, different.values()) if may_create else None
        asked_for = context.pace.over(different.values())
        topics = [describe_asked(context.parts, asked, refused, nameless) async for asked in asked_for]
    if request.include_topic_authorized_operations:
        topics = [
            topic if topic["error_code"] else topic | {"topic_authorized_operations": ON_TOPICS}
            for topic in topics
        ]
    return {
        "brokers": [context.node | {"rack": None}],
        "cluster_id": context.parts.cluster_id,
        "controller_id": context.parts.settings.node_id,
        "topics": topics,
        "cluster_authorized_operations": on_the_cluster(request.include_cluster_authorized_operations),
    }


Refusals = Mapping[Hashable, FaircopyError]


async def create_missing(context: Context, asked: Iterable[Message]) -> Refusals:
    """Create the topics that are requested by name and are not there. Returns why some are refused."""
    topics, partitions = context.parts.hosted.topics, context.parts.settings.topic_partitions
    by_name = (each for each in asked if each.topic_id == UUID_ZERO and each.name is not None)
    not_there = [each.name for each in by_name if each.name not in topics]
    wanted = {name: partial(NewTopic, partitions, {}) for name in not_there}
    return (await context.parts.administration.create(wanted, context.pace)).refused if wanted else {}


def describe_asked(parts: Parts, asked: Message, refused: Refusals | None, nameless: str | None) -> Body:
    """Describe one topic. `refused` says why topics could not be created; None: none was to be."""
    hosted = find(parts.hosted, asked)
    if hosted is not None:
        return describe(hosted, parts.settings.node_id)
    if asked.topic_id != UUID_ZERO or asked.name is None:
        return missing(nameless, ErrorCode.UNKNOWN_TOPIC_ID) | {"topic_id": asked.topic_id}
    if not is_legal(asked.name) or isinstance((refused or {}).get(asked.name), InvalidTopicName):
        return missing(asked.name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if refused is None:
        return missing(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return missing(asked.name, ErrorCode.LEADER_NOT_AVAILABLE)  # it can't be created now, or is gone again


def find(hosted: HostedTopics, asked: Message) -> HostedTopic | None:
    """As Kafka does, use the id if there is one, whatever the name: Java clients send an empty name."""
    if asked.topic_id == UUID_ZERO:
        return hosted.topics.get(asked.name or "")
    return next((each for each in hosted.topics.values() if each.topic.id.bytes == asked.topic_id), None)


def describe(hosted: HostedTopic, node: int, numbers: range | None = None) -> Body:
    """A topic with its partitions, or some of them, all led by one broker."""
    partitions = [
        {
            "partition_index": number,
            **leader_of(hosted.partitions[number], node),
            "replica_nodes": [node],
            "isr_nodes": [node],
        }
        for number in (range(len(hosted.partitions)) if numbers is None else numbers)
    ]
    return {
        "error_code": ErrorCode.NONE,
        "name": hosted.topic.name,
        "topic_id": hosted.topic.id.bytes,
        "is_internal": False,
        "partitions": partitions,
    }


def leader_of(partition: HostedPartition, node: int) -> Body:
    """A partition with its leader, or with an error if it has none at the moment."""
    is_led = not isinstance(partition.failure, NotLed)
    return {
        "error_code": ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        "leader_id": node if is_led else NOBODY,
        "leader_epoch": partition.leader_epoch,
    }


def missing(name: str | None, code: ErrorCode) -> Body:
    """Metadata of a topic that can't be described."""
    return {"error_code": code, "name": name, "partitions": []}


ROUTE = Route(SCHEMA, metadata)
