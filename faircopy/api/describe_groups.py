"""DescribeGroups."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.operations import NOT_ASKED, ON_GROUPS
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 15 DescribeGroups 0-5 flexible 5+
  request
    groups                         []string
    include_authorized_operations  bool       3+     = false
  response
    throttle_time_ms               int32      1+     = 0
    groups                         []
        error_code                 int16
        group_id                   string
        group_state                string
        protocol_type              string
        protocol_data              string
        members                    []
            member_id              string
            group_instance_id      string?    4+     = null
            client_id              string
            client_host            string
            member_metadata        bytes
            member_assignment      bytes
        authorized_operations      int32      3+     = -2147483648
""")


async def describe_groups(request: Message, context: Context) -> Body:
    """DescribeGroups. A group that is requested twice is described once."""
    allowed = {"authorized_operations": ON_GROUPS if request.include_authorized_operations else NOT_ASKED}
    shards, groups = context.parts.shards, context.pace.over(dict.fromkeys(request.groups))
    return {"groups": [shards.groups_of(group).describe(group) | allowed async for group in groups]}


ROUTE = Route(SCHEMA, describe_groups)
