"""AddOffsetsToTxn: the group's offsets partition takes part."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.serving.taking_part import take_part
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 25 AddOffsetsToTxn 0-4 flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    group_id          string
  response
    throttle_time_ms  int32             = 0
    error_code        int16
""")


async def add_offsets_to_txn(request: Message, context: Context) -> Body:
    """AddOffsetsToTxn: the group's offsets partition takes part."""
    partition = context.parts.shards.offsets_of(request.group_id).partition_of(request.group_id)
    return {"error_code": await take_part(request, context, [partition], request.group_id)}


ROUTE = Route(SCHEMA, add_offsets_to_txn)
