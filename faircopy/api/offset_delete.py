"""OffsetDelete: a group forgets its offsets of some partitions (KIP-496)."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 47 OffsetDelete 0
  request
    group_id                 string
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
  response
    error_code               int16
    throttle_time_ms         int32             = 0
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            error_code       int16
""")


async def offset_delete(request: Message, context: Context) -> Body:
    """OffsetDelete."""
    return await context.parts.shards.groups_of(request.group_id).offset_delete(request, context.pace)


ROUTE = Route(SCHEMA, offset_delete)
