"""ListConfigResources: what has settings (KIP-1142): topics and this broker. Version 0 only lists the metrics
of clients (KIP-714), of which there are none.
"""

from __future__ import annotations

from faircopy.serving.config_resources import BROKER, TOPIC
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 74 ListConfigResources 0-1 flexible 0+
  request
    resource_types     []int8     1+     = []
  response
    throttle_time_ms   int32             = 0
    error_code         int16
    config_resources   []
        resource_name  string
        resource_type  int8       1+     = 16
""")
BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
KNOWN = frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP})
WITH_TYPES_FROM = 1


async def list_config_resources(request: Message, context: Context) -> Body:
    """ListConfigResources; all kinds if the request names none."""
    wanted = set(request.resource_types) or KNOWN
    if not wanted <= KNOWN:
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "config_resources": []}
    found = []
    if context.version >= WITH_TYPES_FROM and TOPIC in wanted:
        topics = context.pace.over(list(context.parts.hosted.topics))
        found += [{"resource_name": name, "resource_type": TOPIC} async for name in topics]
    if context.version >= WITH_TYPES_FROM and BROKER in wanted:
        found.append({"resource_name": str(context.parts.settings.node_id), "resource_type": BROKER})
    return {"error_code": ErrorCode.NONE, "config_resources": found}


ROUTE = Route(SCHEMA, list_config_resources)
