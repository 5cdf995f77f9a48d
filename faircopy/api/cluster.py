"""Metadata, FindCoordinator, DescribeCluster: who is there and who is responsible."""

from __future__ import annotations

import contextlib

from faircopy.api.context import LEADER_EPOCH, Body, Context, Message
from faircopy.cluster.topics import InvalidTopicName, TopicExists, check_topic_name
from faircopy.errors import FaircopyError
from faircopy.hosting.catalog import Catalog, HostedTopic
from faircopy.settings.table import Settings
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.operations import NOT_ASKED, ON_THE_CLUSTER, ON_TOPICS
from faircopy.wire.schema.notation import UUID_ZERO

GROUP_KEY, TRANSACTION_KEY = 0, 1
NULLABLE_NAME_SINCE = 12


class ClusterHandlers:
    """Answers about the cluster."""

    def __init__(self, catalog: Catalog, settings: Settings, cluster_id: str) -> None:
        self._catalog = catalog
        self._settings = settings
        self._cluster_id = cluster_id
        self._node_id = settings.node_id

    def _node(self, context: Context) -> Body:
        """This broker, as the client that asks can reach it."""
        return {"node_id": self._node_id, "host": context.advertised.host, "port": context.advertised.port}

    async def metadata(self, request: Message, context: Context) -> Body:
        """Metadata. A topic that is asked for by name is made, if settings and client allow."""
        if request.topics is None or (context.version == 0 and not request.topics):
            every = list(self._catalog.topics.values())
            topics = [self._describe(hosted) async for hosted in context.pace.over(every)]
        else:
            may_create = request.allow_auto_topic_creation and self._settings.auto_create_topics
            # Before version 12 a topic that is asked for by its id has an empty name in the answer, not a null one.
            nameless = None if context.version >= NULLABLE_NAME_SINCE else ""
            # As Kafka does, answer once what is asked for twice: an answer is no greater than what there is.
            different = {(asked.topic_id, asked.name): asked for asked in request.topics}
            asked_for = context.pace.over(different.values())
            topics = [await self._asked(asked, may_create, nameless) async for asked in asked_for]
        if request.include_topic_authorized_operations:
            topics = [
                topic if topic["error_code"] else topic | {"topic_authorized_operations": ON_TOPICS} for topic in topics
            ]
        return {
            "brokers": [self._node(context) | {"rack": None}],
            "cluster_id": self._cluster_id,
            "controller_id": self._node_id,
            "topics": topics,
            "cluster_authorized_operations": on_the_cluster(request),
        }

    async def _asked(self, asked: Message, may_create: bool, nameless: str | None) -> Body:
        hosted = self._by_name_or_id(asked)
        if hosted is not None:
            return self._describe(hosted)
        if asked.topic_id != UUID_ZERO or asked.name is None:
            return missing(nameless, ErrorCode.UNKNOWN_TOPIC_ID) | {"topic_id": asked.topic_id}
        try:
            check_topic_name(asked.name)
            if not may_create:
                return missing(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            with contextlib.suppress(TopicExists):
                await self._catalog.create(asked.name, self._settings.topic_partitions, {})
        except InvalidTopicName:
            return missing(asked.name, ErrorCode.INVALID_TOPIC_EXCEPTION)
        except FaircopyError:
            return missing(asked.name, ErrorCode.LEADER_NOT_AVAILABLE)
        return self._describe(self._catalog.known(asked.name))

    def _by_name_or_id(self, asked: Message) -> HostedTopic | None:
        """As Kafka does, go by the id if there is one, whatever the name: Java's clients give an empty one."""
        if asked.topic_id == UUID_ZERO:
            return self._catalog.topics.get(asked.name or "")
        return next((each for each in self._catalog.topics.values() if each.topic.id.bytes == asked.topic_id), None)

    def _describe(self, hosted: HostedTopic) -> Body:
        node = self._node_id
        partitions = [
            {
                "error_code": ErrorCode.NONE,
                "partition_index": number,
                "leader_id": node,
                "leader_epoch": LEADER_EPOCH,
                "replica_nodes": [node],
                "isr_nodes": [node],
            }
            for number in range(len(hosted.partitions))
        ]
        return {
            "error_code": ErrorCode.NONE,
            "name": hosted.topic.name,
            "topic_id": hosted.topic.id.bytes,
            "is_internal": False,
            "partitions": partitions,
        }

    async def find_coordinator(self, request: Message, context: Context) -> Body:
        """FindCoordinator, one key or several (KIP-699)."""
        refused = {"node_id": -1, "host": "", "port": -1}
        known = request.key_type in (GROUP_KEY, TRANSACTION_KEY)
        refusal = refused | {"error_code": ErrorCode.INVALID_REQUEST}
        answer = self._node(context) | {"error_code": ErrorCode.NONE} if known else refusal
        if context.version < 4:
            return {"error_message": None, **answer}
        keys = context.pace.over(request.coordinator_keys)
        return {"coordinators": [{"key": key, "error_message": None, **answer} async for key in keys]}

    async def describe_cluster(self, request: Message, context: Context) -> Body:
        """DescribeCluster (KIP-700)."""
        host, port = context.advertised
        return {
            "error_code": ErrorCode.NONE,
            "cluster_id": self._cluster_id,
            "controller_id": self._node_id,
            "endpoint_type": request.endpoint_type,
            "cluster_authorized_operations": on_the_cluster(request),
            "brokers": [{"broker_id": self._node_id, "host": host, "port": port, "rack": None}],
        }


def on_the_cluster(request: Message) -> int:
    """The operations that a client may do on the cluster, if it asks."""
    return ON_THE_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED


def missing(name: str | None, code: ErrorCode) -> Body:
    """Metadata of a topic that can't be described."""
    return {"error_code": code, "name": name, "partitions": []}
