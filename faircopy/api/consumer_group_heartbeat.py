"""ConsumerGroupHeartbeat: the newer protocol of consumer groups (KIP-848), which is not there yet.

It is advertised all the same, and refused as by a Kafka broker that has it turned off: librdkafka, which asks
for it only if it is advertised, would otherwise wait for ever, without an error. Java then tells its user to
set `group.protocol=classic`, and librdkafka, in a fatal error, that the API is not supported.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 68 ConsumerGroupHeartbeat 0-1 flexible 0+
  request
    group_id                string
    member_id               string
    member_epoch            int32
    instance_id             string?           = null
    rack_id                 string?           = null
    rebalance_timeout_ms    int32             = -1
    subscribed_topic_names  []string?         = null
    subscribed_topic_regex  string?    1+     = null
    server_assignor         string?           = null
    topic_partitions        []?               = null
        topic_id            uuid
        partitions          []int32
  response
    throttle_time_ms        int32             = 0
    error_code              int16
    error_message           string?           = null
    member_id               string?           = null
    member_epoch            int32             = 0
    heartbeat_interval_ms   int32             = 0
    assignment              {}?               = null
        topic_partitions    []
            topic_id        uuid
            partitions      []int32
""")


async def consumer_group_heartbeat(request: Message, context: Context) -> Body:
    """ConsumerGroupHeartbeat: refused."""
    return {
        "error_code": ErrorCode.UNSUPPORTED_VERSION,
        "error_message": "faircopy has only the classic protocol of groups yet: set group.protocol=classic",
    }


ROUTE = Route(SCHEMA, consumer_group_heartbeat)
