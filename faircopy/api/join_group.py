"""JoinGroup: answered when the rebalance that it takes part in is over (KIP-62, KIP-345, KIP-394,
KIP-814).
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 11 JoinGroup 0-9 flexible 6+
  request
    group_id               string
    session_timeout_ms     int32
    rebalance_timeout_ms   int32      1+     = -1
    member_id              string
    group_instance_id      string?    5+     = null
    protocol_type          string
    protocols              []
        name               string
        metadata           bytes
    reason                 string?    8+     = null
  response
    throttle_time_ms       int32      2+     = 0
    error_code             int16
    generation_id          int32             = -1
    protocol_type          string?    7+     = null
    protocol_name          string?7+
    leader                 string
    skip_assignment        bool       9+     = false
    member_id              string
    members                []
        member_id          string
        group_instance_id  string?    5+     = null
        metadata           bytes
""")


async def join_group(request: Message, context: Context) -> Body:
    """JoinGroup."""
    return await context.parts.shards.groups_of(request.group_id).join_group(
        request, context.version, context.client_id, context.client_host, context.when_gone
    )


ROUTE = Route(SCHEMA, join_group)
