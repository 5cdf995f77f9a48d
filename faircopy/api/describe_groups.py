"""DescribeGroups. Since version 6, a group that does not exist is an error (KIP-1043); before, it is dead."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.serving.codes import MESSAGE_CHARS_MAX
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.operations import NOT_ASKED, ON_GROUPS
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 15 DescribeGroups 0-6 flexible 5+
  request
    groups                         []string
    include_authorized_operations  bool       3+     = false
  response
    throttle_time_ms               int32      1+     = 0
    groups                         []
        error_code                 int16
        error_message              string?    6+     = null
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

NOT_FOUND_SINCE = 6


async def describe_groups(request: Message, context: Context) -> Body:
    """DescribeGroups. A group that is requested twice is described once."""
    allowed = {"authorized_operations": ON_GROUPS if request.include_authorized_operations else NOT_ASKED}
    groups = context.pace.over(dict.fromkeys(request.groups))
    return {"groups": [describe(group, context) | allowed async for group in groups]}


def describe(group: str, context: Context) -> Body:
    """One group, without authorized operations."""
    found = context.parts.shards.groups_of(group).describe(group)
    if context.version < NOT_FOUND_SINCE or found["group_state"] != GroupState.DEAD.value:
        return found
    return found | {
        "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
        "error_message": f"there is no group {group!r}"[:MESSAGE_CHARS_MAX],
    }


ROUTE = Route(SCHEMA, describe_groups)
