"""DescribeQuorum: who keeps the cluster's metadata (KIP-595). One broker does, in the catalogue's journal, of
which it tells positions as offsets.
"""

from __future__ import annotations

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 55 DescribeQuorum 0-2 flexible 0+
  request
    topics                                []
        topic_name                        string
        partitions                        []
            partition_index               int32
  response
    error_code                            int16
    error_message                         string?    2+     = null
    topics                                []
        topic_name                        string
        partitions                        []
            partition_index               int32
            error_code                    int16
            error_message                 string?    2+     = null
            leader_id                     int32
            leader_epoch                  int32
            high_watermark                int64
            current_voters                []
                replica_id                int32
                replica_directory_id      uuid       2+     = zero
                log_end_offset            int64
                last_fetch_timestamp      int64      1+     = -1
                last_caught_up_timestamp  int64      1+     = -1
            observers                     []
                replica_id                int32
                replica_directory_id      uuid       2+     = zero
                log_end_offset            int64
                last_fetch_timestamp      int64      1+     = -1
                last_caught_up_timestamp  int64      1+     = -1
    nodes                                 []         2+     = []
        node_id                           int32
        listeners                         []
            name                          string
            host                          string
            port                          uint16
""")
METADATA_TOPIC = "__cluster_metadata"
UNKNOWN = -1


async def describe_quorum(request: Message, context: Context) -> Body:
    """DescribeQuorum: this broker is the leader and the only voter."""
    topics = []
    async for asked in context.pace.through(request.topics):
        numbers = context.pace.through(asked.partitions)
        rows = [outcome(asked.topic_name, each.partition_index, context) async for each in numbers]
        topics.append({"topic_name": asked.topic_name, "partitions": rows})
    host, port = context.advertised
    listener = {"name": "CONTROLLER", "host": host, "port": port}
    return {
        "error_code": ErrorCode.NONE,
        "topics": topics,
        "nodes": [{"node_id": context.parts.settings.node_id, "listeners": [listener]}],
    }


def outcome(topic: str, number: int, context: Context) -> Body:
    """The answer for one partition, of which only that of the metadata is known."""
    is_known = (topic, number) == (METADATA_TOPIC, 0)
    if not is_known:
        return {
            "partition_index": number,
            "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "leader_id": UNKNOWN,
            "leader_epoch": UNKNOWN,
            "high_watermark": UNKNOWN,
            "current_voters": [],
            "observers": [],
        }
    node_id = context.parts.settings.node_id
    watermarks = context.parts.catalogue.journal.watermarks
    return {
        "partition_index": number,
        "error_code": ErrorCode.NONE,
        "leader_id": node_id,
        "leader_epoch": context.parts.incarnation,
        "high_watermark": watermarks.durable,
        "current_voters": [{"replica_id": node_id, "log_end_offset": watermarks.appended}],
        "observers": [],
    }


ROUTE = Route(SCHEMA, describe_quorum)
