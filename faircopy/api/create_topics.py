"""CreateTopics: creates each requested topic, or says why not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from faircopy.catalogue.topic_configs import as_read, check_configs
from faircopy.hosting.topic_changes import NewTopic, TopicChanges
from faircopy.serving.assignments import ensure_alone
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.repeated import Named
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.settings.table import Settings
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 19 CreateTopics 2-7 flexible 5+
  request
    topics                       []
        name                     string
        num_partitions           int32
        replication_factor       int16
        assignments              []
            partition_index      int32
            broker_ids           []int32
        configs                  []
            name                 string
            value                string?
    timeout_ms                   int32             = 60000
    validate_only                bool              = false
  response
    throttle_time_ms             int32             = 0
    topics                       []
        name                     string
        topic_id                 uuid       7+     = zero
        error_code               int16
        error_message            string?           = null
        topic_config_error_code  int16      5+     tag 0 = 0
        num_partitions           int32      5+     = -1
        replication_factor       int16      5+     = -1
        configs                  []?        5+
            name                 string
            value                string?
            read_only            bool
            config_source        int8              = -1
            is_sensitive         bool
""")


async def create_topics(request: Message, context: Context) -> Body:
    """CreateTopics."""
    asked = {each.name: each for each in request.topics}
    repeated = Named(each.name for each in request.topics).repeated(lambda name: f"topic {name!r}")
    settings, pace = context.parts.settings, context.pace
    wanted = {name: partial(new_topic, asked[name], settings) for name in asked if name not in repeated}
    changes = await context.parts.administration.create(wanted, pace, validate_only=request.validate_only)
    changes.refused |= repeated
    is_made = not request.validate_only
    return {"topics": [answer_of(changes, name, is_made=is_made) async for name in pace.through(asked)]}


def new_topic(asked: Message, settings: Settings) -> NewTopic:
    """What a request asks of a new topic. Raises Refused, InvalidTopicConfig."""
    configs = as_read({config.name: config.value for config in asked.configs})
    check_configs(configs)
    given = {name: value for name, value in configs.items() if value is not None}
    return NewTopic(partition_count(asked, settings), given)


def answer_of(changes: TopicChanges, name: str, *, is_made: bool) -> Body:
    """The answer for one topic."""
    error = changes.refused.get(name)
    if error is not None:
        return {
            "name": name,
            "error_code": code_of(error),
            "error_message": message_of(error),
            "configs": None,
        }
    topic = changes.topics[name]
    answer: Body = {
        "name": name,
        "error_code": ErrorCode.NONE,
        "num_partitions": topic.partitions,
        "replication_factor": 1,
        "configs": created_configs(topic.configs),
    }
    return answer | {"topic_id": topic.id.bytes} if is_made else answer


def partition_count(asked: Message, settings: Settings) -> int:
    """The number of partitions of a new topic. Raises Refused."""
    if asked.assignments:
        if (asked.num_partitions, asked.replication_factor) != (-1, -1):
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"{asked.num_partitions} partitions, replication factor {asked.replication_factor}, and "
                f"assignments are given: with assignments, leave the others at -1",
            )
        ensure_alone([assignment.broker_ids for assignment in asked.assignments], settings.node_id)
        wanted = sorted(assignment.partition_index for assignment in asked.assignments)
        if wanted != list(range(len(wanted))):
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 on")
        return len(wanted)
    if asked.replication_factor not in (-1, 1):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {asked.replication_factor}: this cluster has 1 broker, so give 1",
        )
    partitions: int = asked.num_partitions
    if partitions == -1:
        return settings.topic_partitions
    if partitions < 1:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: give 1 or more")
    return partitions


def created_configs(configs: Mapping[str, str]) -> list[Body]:
    """A new topic's settings, as CreateTopics returns them."""
    return [
        {"name": name, "value": value, "read_only": False, "config_source": 1, "is_sensitive": False}
        for name, value in configs.items()
    ]


ROUTE = Route(SCHEMA, create_topics)
