"""ListPartitionReassignments: which partitions are on their way to other brokers (KIP-455). With one broker,
none ever is.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 46 ListPartitionReassignments 0 flexible 0+
  request
    timeout_ms                 int32             = 60000
    topics                     []?               = null
        name                   string
        partition_indexes      []int32
  response
    throttle_time_ms           int32             = 0
    error_code                 int16
    error_message              string?           = null
    topics                     []
        name                   string
        partitions             []
            partition_index    int32
            replicas           []int32
            adding_replicas    []int32
            removing_replicas  []int32
""")


async def list_partition_reassignments(request: Message, context: Context) -> Body:
    """ListPartitionReassignments."""
    return {"error_code": ErrorCode.NONE, "topics": []}


ROUTE = Route(SCHEMA, list_partition_reassignments)
