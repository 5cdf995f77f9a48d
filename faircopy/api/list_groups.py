"""ListGroups, of all states and types or of the requested ones (KIP-518, KIP-848)."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 16 ListGroups 0-5 flexible 3+
  request
    states_filter      []string   4+
    types_filter       []string   5+
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16
    groups             []
        group_id       string
        protocol_type  string
        group_state    string     4+
        group_type     string     5+
""")


async def list_groups(request: Message, context: Context) -> Body:
    """ListGroups: the groups of all shards."""
    groups = [body for shard in context.parts.shards for body in shard.groups.listing(request)]
    return {"error_code": ErrorCode.NONE, "groups": groups}


ROUTE = Route(SCHEMA, list_groups)
