"""DescribeClientQuotas: which quotas clients have (KIP-546). There are none."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 48 DescribeClientQuotas 0-1 flexible 1+
  request
    components           []
        entity_type      string
        match_type       int8
        match            string?
    strict               bool
  response
    throttle_time_ms     int32             = 0
    error_code           int16
    error_message        string?           = null
    entries              []?
        entity           []
            entity_type  string
            entity_name  string?
        values           []
            key          string
            value        float64
""")


async def describe_client_quotas(request: Message, context: Context) -> Body:
    """DescribeClientQuotas."""
    return {"error_code": ErrorCode.NONE, "entries": []}


ROUTE = Route(SCHEMA, describe_client_quotas)
