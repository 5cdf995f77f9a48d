"""CreatePartitions: topics get more partitions (KIP-195)."""

from __future__ import annotations

from functools import partial

from faircopy.hosting.topic_changes import TopicChanges
from faircopy.serving.assignments import ensure_alone
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.repeated import Named
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 37 CreatePartitions 0-3 flexible 2+
  request
    topics              []
        name            string
        count           int32
        assignments     []?
            broker_ids  []int32
    timeout_ms          int32
    validate_only       bool              = false
  response
    throttle_time_ms    int32             = 0
    results             []
        name            string
        error_code      int16
        error_message   string?           = null
""")


async def create_partitions(request: Message, context: Context) -> Body:
    """CreatePartitions."""
    asked = {each.name: each for each in request.topics}
    repeated = Named(each.name for each in request.topics).repeated(lambda name: f"topic {name!r}")
    node_id, pace = context.parts.settings.node_id, context.pace
    counts = {name: partial(greater_count, asked[name], node_id) for name in asked if name not in repeated}
    changes = await context.parts.administration.grow(counts, pace, validate_only=request.validate_only)
    changes.refused |= repeated
    return {"results": [answer_of(changes, name) async for name in pace.through(asked)]}


def answer_of(changes: TopicChanges, name: str) -> Body:
    """The answer for one topic."""
    error = changes.refused.get(name)
    if error is None:
        return {"name": name, "error_code": ErrorCode.NONE}
    return {"name": name, "error_code": code_of(error), "error_message": message_of(error)}


def greater_count(asked: Message, node_id: int, present: int) -> int:
    """The number of partitions that is asked for, of a topic that has `present` ones. Raises Refused."""
    if asked.count <= present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {asked.name!r} has {present} partitions: give more than that",
        )
    if asked.assignments is not None:
        if len(asked.assignments) != asked.count - present:
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "give one assignment for each new partition")
        ensure_alone([assignment.broker_ids for assignment in asked.assignments], node_id)
    count: int = asked.count
    return count


ROUTE = Route(SCHEMA, create_partitions)
