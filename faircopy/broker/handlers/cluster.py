"""Metadata, FindCoordinator, DescribeCluster: who is there and who is responsible."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from faircopy.broker.catalog import Catalog, HostedTopic
from faircopy.broker.handlers.context import LEADER_EPOCH, Body, BrokerAddress, Context, Message
from faircopy.broker.settings import Settings
from faircopy.cluster.topics import InvalidTopicName, TopicExists, check_topic_name
from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode

GROUP_KEY, TRANSACTION_KEY = 0, 1
NULLABLE_NAME_SINCE = 12


class ClusterHandlers:
    """Answers about the cluster."""

    def __init__(
        self, catalog: Catalog, settings: Settings, cluster_id: str, address: Callable[[], BrokerAddress]
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._cluster_id = cluster_id
        self._address = address

    async def metadata(self, request: Message, context: Context) -> Body:
        """Metadata. A topic that is asked for by name is made, if settings and client allow."""
        if request.topics is None or (context.version == 0 and not request.topics):
            topics = [self._describe(hosted) for hosted in self._catalog.topics.values()]
        else:
            may_create = request.allow_auto_topic_creation and self._settings.auto_create_topics
            # Before version 12 a topic that is asked for by its id has an empty name in the answer, not a null one.
            nameless = None if context.version >= NULLABLE_NAME_SINCE else ""
            topics = [await self._asked(asked, may_create, nameless) for asked in request.topics]
        node = self._address()
        return {
            "brokers": [{"node_id": node.node_id, "host": node.host, "port": node.port, "rack": None}],
            "cluster_id": self._cluster_id,
            "controller_id": node.node_id,
            "topics": topics,
        }

    async def _asked(self, asked: Message, may_create: bool, nameless: str | None) -> Body:
        hosted = self._by_name_or_id(asked)
        if hosted is not None:
            return self._describe(hosted)
        if asked.name is None:
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
        if asked.name is not None:
            return self._catalog.topics.get(asked.name)
        return next((each for each in self._catalog.topics.values() if each.topic.id.bytes == asked.topic_id), None)

    def _describe(self, hosted: HostedTopic) -> Body:
        node = self._address().node_id
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
        node = self._address()
        place = {"node_id": node.node_id, "host": node.host, "port": node.port}
        refused = {"node_id": -1, "host": "", "port": -1}
        known = request.key_type in (GROUP_KEY, TRANSACTION_KEY)
        answer = (place | {"error_code": 0}) if known else (refused | {"error_code": ErrorCode.INVALID_REQUEST})
        if context.version < 4:
            return {"error_message": None, **answer}
        return {"coordinators": [{"key": key, "error_message": None, **answer} for key in request.coordinator_keys]}

    async def describe_cluster(self, request: Message, context: Context) -> Body:
        """DescribeCluster (KIP-700)."""
        node = self._address()
        return {
            "error_code": ErrorCode.NONE,
            "cluster_id": self._cluster_id,
            "controller_id": node.node_id,
            "endpoint_type": request.endpoint_type,
            "brokers": [{"broker_id": node.node_id, "host": node.host, "port": node.port, "rack": None}],
        }


def missing(name: str | None, code: ErrorCode) -> Body:
    """Metadata of a topic that can't be described."""
    return {"error_code": code, "name": name, "partitions": []}
