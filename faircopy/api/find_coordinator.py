"""FindCoordinator, one key or several (KIP-699).

Version 6 has keys of share groups (KIP-932). They are refused, as by a Kafka without share groups.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 10 FindCoordinator 0-6 flexible 3+
  request
    key                string     0-3
    key_type           int8       1+     = 0
    coordinator_keys   []string   4+
  response
    throttle_time_ms   int32      1+     = 0
    coordinators       []         4+
        key            string
        node_id        int32
        host           string
        port           int32
        error_code     int16
        error_message  string?           = null
    error_code         int16      0-3
    error_message      string?    1-3    = null
    node_id            int32      0-3
    host               string     0-3
    port               int32      0-3
""")


GROUP_KEY, TRANSACTION_KEY = 0, 1


async def find_coordinator(request: Message, context: Context) -> Body:
    """FindCoordinator, one key or several (KIP-699)."""
    refused = {"node_id": -1, "host": "", "port": -1}
    known = request.key_type in (GROUP_KEY, TRANSACTION_KEY)
    refusal = refused | {"error_code": ErrorCode.INVALID_REQUEST}
    answer = context.node | {"error_code": ErrorCode.NONE} if known else refusal
    if context.version < 4:
        return {"error_message": None, **answer}
    keys = context.pace.over(request.coordinator_keys)
    return {"coordinators": [{"key": key, "error_message": None, **answer} async for key in keys]}


ROUTE = Route(SCHEMA, find_coordinator)
