"""CreatePartitions: topics get more partitions (KIP-195)."""

from __future__ import annotations

from functools import partial

from faircopy.errors import FaircopyError
from faircopy.serving.assignments import ensure_alone
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.parts import Parts
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
    named = Named(asked.name for asked in request.topics)
    results = []
    async for asked in context.pace.through({asked.name: asked for asked in request.topics}.values()):
        try:
            named.ensure_once(asked.name, f"topic {asked.name!r}")
            await grow(context.parts, asked, request.validate_only)
            results.append({"name": asked.name, "error_code": 0})
        except FaircopyError as error:
            results.append(
                {"name": asked.name, "error_code": code_of(error), "error_message": message_of(error)}
            )
    return {"results": results}


async def grow(parts: Parts, asked: Message, validate_only: bool) -> None:
    """Give a topic more partitions. Raises Refused, UnknownTopic, TooManyPartitions."""
    decide = partial(greater_count, asked, node_id=parts.settings.node_id)
    await parts.catalog.grow(asked.name, decide, validate_only=validate_only)


def greater_count(asked: Message, present: int, *, node_id: int) -> int:
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
