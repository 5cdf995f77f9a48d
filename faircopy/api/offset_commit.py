"""OffsetCommit: answered when the offsets are durable.

Since version 9, Kafka calls `generation_id` `generation_id_or_member_epoch` (KIP-848), and tells a member of
a group that does not exist so. Here it is told ILLEGAL_GENERATION in each version: clients join again then,
and give up otherwise. Version 10 has topic ids.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 8 OffsetCommit 2-9 flexible 8+
  request
    group_id                        string
    generation_id                   int32             = -1
    member_id                       string
    group_instance_id               string?    7+     = null
    retention_time_ms               int64      2-4    = -1
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            committed_offset        int64
            committed_leader_epoch  int32      6+     = -1
            committed_metadata      string?           = null
  response
    throttle_time_ms                int32      3+     = 0
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            error_code              int16
""")


async def offset_commit(request: Message, context: Context) -> Body:
    """OffsetCommit."""
    return await context.parts.shards.groups_of(request.group_id).offset_commit(request, context.pace)


ROUTE = Route(SCHEMA, offset_commit)
