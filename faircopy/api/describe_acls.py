"""DescribeAcls: who may do what (KIP-140). Everybody may do everything, so there is nothing to describe."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 29 DescribeAcls 1-3 flexible 2+
  request
    resource_type_filter  int8
    resource_name_filter  string?
    pattern_type_filter   int8              = 3
    principal_filter      string?
    host_filter           string?
    operation             int8
    permission_type       int8
  response
    throttle_time_ms      int32             = 0
    error_code            int16
    error_message         string?
    resources             []
        resource_type     int8
        resource_name     string
        pattern_type      int8              = 3
        acls              []
            principal     string
            host          string
            operation     int8
            permission_type  int8
""")


async def describe_acls(request: Message, context: Context) -> Body:
    """DescribeAcls, with the answer of a Kafka broker that has no authorizer."""
    return {
        "error_code": ErrorCode.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured: faircopy has no ACLs yet",
        "resources": [],
    }


ROUTE = Route(SCHEMA, describe_acls)
