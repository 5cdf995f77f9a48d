"""DescribeCluster: the one broker (KIP-700)."""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.operations import on_the_cluster
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 60 DescribeCluster 0-2 flexible 0+
  request
    include_cluster_authorized_operations  bool              = false
    endpoint_type                          int8       1+     = 1
    include_fenced_brokers                 bool       2+     = false
  response
    throttle_time_ms                       int32             = 0
    error_code                             int16
    error_message                          string?           = null
    endpoint_type                          int8       1+     = 1
    cluster_id                             string
    controller_id                          int32             = -1
    brokers                                []
        broker_id                          int32
        host                               string
        port                               int32
        rack                               string?           = null
        is_fenced                          bool       2+     = false
    cluster_authorized_operations          int32             = -2147483648
""")


async def describe_cluster(request: Message, context: Context) -> Body:
    """DescribeCluster (KIP-700)."""
    host, port = context.advertised
    node_id = context.parts.settings.node_id
    return {
        "error_code": ErrorCode.NONE,
        "cluster_id": context.parts.cluster_id,
        "controller_id": node_id,
        "endpoint_type": request.endpoint_type,
        "cluster_authorized_operations": on_the_cluster(request.include_cluster_authorized_operations),
        "brokers": [{"broker_id": node_id, "host": host, "port": port, "rack": None}],
    }


ROUTE = Route(SCHEMA, describe_cluster)
