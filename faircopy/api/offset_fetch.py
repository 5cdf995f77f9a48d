"""OffsetFetch: one group, or many since version 8 (KIP-709)."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 9 OffsetFetch 1-8 flexible 6+
  request
    groups                              []         8+
        group_id                        string
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
    """OffsetFetch."""
    return await context.parts.groups.offset_fetch(request, context.pace)


ROUTE = Route(SCHEMA, offset_fetch)
