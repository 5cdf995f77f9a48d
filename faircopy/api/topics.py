"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords, DescribeLogDirs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from faircopy.api.context import Body, Context, Message, message_of
from faircopy.api.read_your_commits import NotCaughtUp, catch_up
from faircopy.cluster.store import Conflict
from faircopy.cluster.topic_configs import InvalidTopicConfig, check_configs
from faircopy.cluster.topics import InvalidTopicName, TopicExists, UnknownTopic, check_topic_name, ensure_not_reserved
from faircopy.errors import FaircopyError
from faircopy.hosting.catalog import Catalog, TooManyPartitions
from faircopy.loop.waiting import tell
from faircopy.settings.table import Settings
from faircopy.storage.clock import Clock
from faircopy.storage.files import space_around
from faircopy.wire.error_codes import ErrorCode

CODES: tuple[tuple[type[FaircopyError], ErrorCode], ...] = (
    (InvalidTopicName, ErrorCode.INVALID_TOPIC_EXCEPTION),
    (TopicExists, ErrorCode.TOPIC_ALREADY_EXISTS),
    (Conflict, ErrorCode.TOPIC_ALREADY_EXISTS),
    (UnknownTopic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (InvalidTopicConfig, ErrorCode.INVALID_CONFIG),
    (TooManyPartitions, ErrorCode.INVALID_PARTITIONS),
)
HIGH_WATERMARK = -1


class RefusedTopic(FaircopyError):
    """A request about a topic is refused with this code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: FaircopyError) -> ErrorCode:
    """The Kafka code for an error about a topic."""
    if isinstance(error, RefusedTopic):
        return error.code
    return next((code for kind, code in CODES if isinstance(error, kind)), ErrorCode.KAFKA_STORAGE_ERROR)


class TopicHandlers:
    """Changes of topics."""

    def __init__(self, catalog: Catalog, settings: Settings, data_directory: str, clock: Clock) -> None:
        self._catalog = catalog
        self._settings = settings
        self._data_directory = data_directory
        self._clock = clock

    # -- CreateTopics --------------------------------------------------------------------------------------------

    async def create_topics(self, request: Message, context: Context) -> Body:
        """CreateTopics."""
        times = Counter(asked.name for asked in request.topics)
        answers = []
        async for asked in context.pace.through(request.topics):
            try:
                if times[asked.name] > 1:
                    raise RefusedTopic(ErrorCode.INVALID_REQUEST, f"topic {asked.name!r} is asked for twice")
                answers.append(await self._create(asked, request.validate_only))
            except FaircopyError as error:
                answers.append(
                    {
                        "name": asked.name,
                        "error_code": code_of(error),
                        "error_message": message_of(error),
                        "configs": None,
                    }
                )
        return {"topics": answers}

    async def _create(self, asked: Message, validate_only: bool) -> Body:
        # In Kafka's order: Connect and others count on hearing first that a topic exists.
        check_topic_name(asked.name)
        ensure_not_reserved(asked.name)
        if asked.name in self._catalog.topics:
            raise TopicExists(f"topic {asked.name!r} exists")
        configs = {config.name: config.value for config in asked.configs}
        check_configs(configs)
        partitions = self._partition_count(asked)
        answer: Body = {
            "name": asked.name,
            "error_code": 0,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": created_configs(configs),
        }
        if not validate_only:
            hosted = await self._catalog.create(asked.name, partitions, configs)
            answer["topic_id"] = hosted.topic.id.bytes
        return answer

    def _partition_count(self, asked: Message) -> int:
        if asked.assignments:
            ensure_alone([assignment.broker_ids for assignment in asked.assignments], self._settings.node_id)
            wanted = sorted(assignment.partition_index for assignment in asked.assignments)
            if wanted != list(range(len(wanted))):
                raise RefusedTopic(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 on")
            return len(wanted)
        if asked.replication_factor not in (-1, 1):
            raise RefusedTopic(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"replication factor {asked.replication_factor}: this cluster has 1 broker, so give 1",
            )
        partitions: int = asked.num_partitions
        if partitions == -1:
            return self._settings.topic_partitions
        if partitions < 1:
            raise RefusedTopic(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: give 1 or more")
        return partitions

    # -- the others ----------------------------------------------------------------------------------------------

    async def delete_topics(self, request: Message, context: Context) -> Body:
        """DeleteTopics, by name, or by id from version 6 on."""
        asked = [(topic.name, topic.topic_id) for topic in request.topics or ()]
        asked += [(name, None) for name in request.topic_names or ()]
        return {
            "responses": [await self._delete(name, topic_id) async for name, topic_id in context.pace.through(asked)]
        }

    async def _delete(self, name: str | None, topic_id: object) -> Body:
        if name is None:
            found = (each.topic.name for each in self._catalog.topics.values() if each.topic.id.bytes == topic_id)
            name = next(found, None)
            if name is None:
                return {"name": None, "topic_id": topic_id, "error_code": ErrorCode.UNKNOWN_TOPIC_ID}
        try:
            hosted = self._catalog.known(name)
            await self._catalog.delete(name)
        except FaircopyError as error:
            return {"name": name, "error_code": code_of(error), "error_message": message_of(error)}
        return {"name": name, "topic_id": hosted.topic.id.bytes, "error_code": ErrorCode.NONE}

    async def create_partitions(self, request: Message, context: Context) -> Body:
        """CreatePartitions."""
        results = []
        async for asked in context.pace.through(request.topics):
            try:
                await self._grow(asked, request.validate_only)
                results.append({"name": asked.name, "error_code": 0})
            except FaircopyError as error:
                results.append({"name": asked.name, "error_code": code_of(error), "error_message": message_of(error)})
        return {"results": results}

    async def _grow(self, asked: Message, validate_only: bool) -> None:
        present = self._catalog.known(asked.name).topic.partitions
        if asked.count <= present:
            raise RefusedTopic(
                ErrorCode.INVALID_PARTITIONS,
                f"topic {asked.name!r} has {present} partitions: give more than that",
            )
        if asked.assignments is not None:
            if len(asked.assignments) != asked.count - present:
                raise RefusedTopic(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "give one assignment for each new partition")
            ensure_alone([assignment.broker_ids for assignment in asked.assignments], self._settings.node_id)
        if not validate_only:
            await self._catalog.grow(asked.name, asked.count)

    async def delete_records(self, request: Message, context: Context) -> Body:
        """DeleteRecords: move the start of logs."""
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        await self._delete_records(topic.name, asked)
                        async for asked in context.pace.through(topic.partitions)
                    ],
                }
                async for topic in context.pace.through(request.topics)
            ]
        }

    async def _delete_records(self, topic: str, asked: Message) -> Body:
        answer = {"partition_index": asked.partition_index, "low_watermark": -1}
        partition = self._catalog.find(topic, asked.partition_index)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        log = partition.log
        try:
            if asked.offset == HIGH_WATERMARK or asked.offset > log.end_offset:
                await catch_up(partition, self._clock)
            partition.ensure_writable()
        except NotCaughtUp:
            return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
        except FaircopyError:
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}
        offset = log.end_offset if asked.offset == HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= log.end_offset:
            return answer | {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE}
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        partition.trim(offset, lambda: tell(done))
        await done
        return answer | {"low_watermark": max(log.start_offset, offset), "error_code": ErrorCode.NONE}

    async def describe_log_dirs(self, request: Message, context: Context) -> Body:
        """DescribeLogDirs: sizes of the visible logs."""
        wanted = (
            {topic.topic: set(topic.partitions) for topic in request.topics} if request.topics is not None else None
        )
        topics = [
            {
                "name": hosted.topic.name,
                "partitions": [
                    {
                        "partition_index": partition.name.partition,
                        "partition_size": sum(segment.size for segment in partition.log.segments),
                        "offset_lag": 0,
                        "is_future_key": False,
                    }
                    for partition in hosted.partitions
                    if wanted is None or partition.name.partition in wanted[hosted.topic.name]
                ],
            }
            async for hosted in context.pace.over(list(self._catalog.topics.values()))
            if wanted is None or hosted.topic.name in wanted
        ]
        space = space_around(Path(self._data_directory)) if context.version >= 4 else None
        return {
            "error_code": ErrorCode.NONE,
            "results": [
                {
                    "error_code": ErrorCode.NONE,
                    "log_dir": self._data_directory,
                    "topics": topics,
                    "total_bytes": space.total_bytes if space else -1,
                    "usable_bytes": space.usable_bytes if space else -1,
                }
            ],
        }


def ensure_alone(assignments: list[list[int]], node_id: int) -> None:
    """Raise unless every partition is assigned to the one broker there is."""
    for brokers in assignments:
        if list(brokers) != [node_id]:
            raise RefusedTopic(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"replicas {list(brokers)}: the only broker is {node_id}",
            )


def created_configs(configs: Mapping[str, str]) -> list[Body]:
    """The settings that a topic was given, as CreateTopics answers them."""
    return [
        {"name": name, "value": value, "read_only": False, "config_source": 1, "is_sensitive": False}
        for name, value in configs.items()
    ]
