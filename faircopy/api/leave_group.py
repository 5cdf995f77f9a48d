"""LeaveGroup: one member (before version 3), or many (KIP-345)."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 13 LeaveGroup 0-5 flexible 4+
  request
    group_id               string
    members                []         3+
        member_id          string
        group_instance_id  string?           = null
        reason             string?    5+     = null
    member_id              string     0-2
  response
    throttle_time_ms       int32      1+     = 0
    error_code             int16
    members                []         3+
        member_id          string
        group_instance_id  string?           = null
        error_code         int16
""")


async def leave_group(request: Message, context: Context) -> Body:
    """LeaveGroup."""
    return await context.parts.shards.groups_of(request.group_id).leave_group(request)


ROUTE = Route(SCHEMA, leave_group)
