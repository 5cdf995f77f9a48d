"""Heartbeat: a member of a group is there, and hears of a rebalance."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 12 Heartbeat 0-4 flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?    3+     = null
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16
""")


async def heartbeat(request: Message, context: Context) -> Body:
    """Heartbeat."""
    return await context.parts.shards.groups_of(request.group_id).heartbeat(request)


ROUTE = Route(SCHEMA, heartbeat)
