"""DescribeProducers: who has written to a partition (KIP-664). `last_timestamp` is not kept."""

from __future__ import annotations

from faircopy.partition.participant import NotLed
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 61 DescribeProducers 0 flexible 0+
  request
    topics                                []
        name                              string
        partition_indexes                 []int32
  response
    throttle_time_ms                      int32             = 0
    topics                                []
        name                              string
        partitions                        []
            partition_index               int32
            error_code                    int16
            error_message                 string?           = null
            active_producers              []
                producer_id               int64
                producer_epoch            int32
                last_sequence             int32             = -1
                last_timestamp            int64             = -1
                coordinator_epoch         int32
                current_txn_start_offset  int64             = -1
""")


async def describe_producers(request: Message, context: Context) -> Body:
    """DescribeProducers (KIP-664)."""
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    describe(context.parts, topic.name, number)
                    async for number in context.pace.over(dict.fromkeys(topic.partition_indexes))
                ],
            }
            async for topic in context.pace.over({topic.name: topic for topic in request.topics}.values())
        ]
    }


def describe(parts: Parts, topic: str, number: int) -> Body:
    """The producers that one partition knows."""
    answer: Body = {"partition_index": number, "active_producers": []}
    partition = parts.hosted.find(topic, number)
    if partition is None:
        return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if isinstance(partition.failure, NotLed):
        return answer | {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    # Drafts have no offset yet, so an open transaction has no start offset.
    return answer | {
        "error_code": ErrorCode.NONE,
        "active_producers": [
            {
                "producer_id": producer_id,
                "producer_epoch": producer.epoch,
                "last_sequence": producer.seen[-1].last_sequence if producer.seen else -1,
                "last_timestamp": -1,
                "coordinator_epoch": 0,
                "current_txn_start_offset": -1,
            }
            for producer_id, producer in partition.state.producers.items()
        ],
    }


ROUTE = Route(SCHEMA, describe_producers)
