"""SyncGroup: answered when the leader has sent the assignment."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 14 SyncGroup 0-5 flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?    3+     = null
    protocol_type      string?    5+     = null
    protocol_name      string?    5+     = null
    assignments        []
        member_id      string
        assignment     bytes
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16
    protocol_type      string?    5+     = null
    protocol_name      string?    5+     = null
    assignment         bytes
""")


async def sync_group(request: Message, context: Context) -> Body:
    """SyncGroup."""
    return await context.parts.shards.groups_of(request.group_id).sync_group(request)


ROUTE = Route(SCHEMA, sync_group)
