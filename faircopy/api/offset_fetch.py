"""OffsetFetch: one group, or many since version 8 (KIP-709).

Since version 9, a member of the consumer protocol says who it is (KIP-848); in groups of the classic one,
that is ignored, as in Kafka. Version 10 has topic ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 9 OffsetFetch 1-9 flexible 6+
  request
    groups                              []         8+
        group_id                        string
        member_id                       string?    9+     = null
        member_epoch                    int32      9+     = -1
        topics                          []?
            name                        string
            partition_indexes           []int32
    group_id                            string     1-7
    topics                              []?2+      1-7
        name                            string
        partition_indexes               []int32
    require_stable                      bool       7+     = false
  response
    throttle_time_ms                    int32      3+     = 0
    groups                              []         8+
        group_id                        string
        topics                          []
            name                        string
            partitions                  []
                partition_index         int32
                committed_offset        int64
                committed_leader_epoch  int32             = -1
                metadata                string?
                error_code              int16
        error_code                      int16             = 0
    topics                              []         1-7
        name                            string
        partitions                      []
            partition_index             int32
            committed_offset            int64
            committed_leader_epoch      int32      5-7    = -1
            metadata                    string?
            error_code                  int16
    error_code                          int16      2-7    = 0
""")


async def offset_fetch(request: Message, context: Context) -> Body:
    """OffsetFetch. A group that is requested twice is answered once."""
    groups = {group.group_id: group.topics for group in request.groups}
    many = [
        {"group_id": group, **await fetched(group, groups[group], request, context)}
        async for group in context.pace.over(groups)
    ]
    one = {} if many else await fetched(request.group_id, request.topics, request, context)
    return {"groups": many, **one}


async def fetched(group: str, topics: Sequence[Message] | None, request: Message, context: Context) -> Body:
    """The offsets of one group."""
    coordinator = context.parts.shards.groups_of(group)
    return await coordinator.fetch_offsets(group, topics, request.require_stable, context.pace)


ROUTE = Route(SCHEMA, offset_fetch)
