"""OffsetForLeaderEpoch: where a leader's epoch ends (KIP-101)."""

from __future__ import annotations

from faircopy.errors import FaircopyError
from faircopy.hosting.leader_epoch import check_leader_epoch
from faircopy.hosting.read_your_commits import NotCaughtUp, catch_up
from faircopy.serving.codes import code_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 23 OffsetForLeaderEpoch 2-4 flexible 4+
  request
    replica_id                    int32      3+     = -2
    topics                        []
        topic                     string
        partitions                []
            partition             int32
            current_leader_epoch  int32             = -1
            leader_epoch          int32
  response
    throttle_time_ms              int32             = 0
    topics                        []
        topic                     string
        partitions                []
            error_code            int16
            partition             int32
            leader_epoch          int32             = -1
            end_offset            int64             = -1
""")


async def offset_for_leader_epoch(request: Message, context: Context) -> Body:
    """OffsetForLeaderEpoch (KIP-101)."""
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [
                    await find_end(context.parts, topic.topic, asked)
                    async for asked in context.pace.over(topic.partitions)
                ],
            }
            async for topic in context.pace.over(request.topics)
        ]
    }


async def find_end(parts: Parts, topic: str, asked: Message) -> Body:
    """Where one partition's epoch ends."""
    answer = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
    partition = parts.hosted.find(topic, asked.partition)
    if partition is None:
        return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    code = check_leader_epoch(asked.current_leader_epoch, partition.leader_epoch)
    if code is not ErrorCode.NONE:
        return answer | {"error_code": code}
    try:
        await catch_up(partition, parts.clock)
    except NotCaughtUp:
        return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
    except FaircopyError as error:
        return answer | {"error_code": code_of(error)}
    epoch, end_offset = partition.epochs.end_of(asked.leader_epoch, partition.log.end_offset)
    return answer | {"error_code": ErrorCode.NONE, "leader_epoch": epoch, "end_offset": end_offset}


ROUTE = Route(SCHEMA, offset_for_leader_epoch)
