"""DeleteGroups: deletes groups without members, and their offsets (KIP-229).

Version 3 has error messages.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 42 DeleteGroups 0-2 flexible 2+
  request
    groups_names      []string
  response
    throttle_time_ms  int32             = 0
    results           []
        group_id      string
        error_code    int16
""")


async def delete_groups(request: Message, context: Context) -> Body:
    """DeleteGroups. A group that is named twice is deleted once."""
    shards, names = context.parts.shards, context.pace.through(dict.fromkeys(request.groups_names))
    errors = [(group, await shards.groups_of(group).delete(group)) async for group in names]
    return {"results": [{"group_id": group, "error_code": error} for group, error in errors]}


ROUTE = Route(SCHEMA, delete_groups)
