"""ElectLeaders: give partitions their preferred leader, or any (KIP-183, KIP-460). With one broker, a leader
never has to be elected.
"""

from __future__ import annotations

from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 43 ElectLeaders 0-2 flexible 2+
  request
    election_type             int8       1+     = 0
    topic_partitions          []?
        topic                 string
        partitions            []int32
    timeout_ms                int32             = 60000
  response
    throttle_time_ms          int32             = 0
    error_code                int16      1+     = 0
    replica_election_results  []
        topic                 string
        partition_result      []
            partition_id      int32
            error_code        int16
            error_message     string?
""")


async def elect_leaders(request: Message, context: Context) -> Body:
    """ElectLeaders. Nothing changes. If all are meant, only those with a new leader are told, as in Kafka."""
    results = []
    async for asked in context.pace.through(request.topic_partitions or ()):
        numbers = context.pace.through(asked.partitions)
        rows = [outcome(context.parts.hosted, asked.topic, number) async for number in numbers]
        results.append({"topic": asked.topic, "partition_result": rows})
    return {"error_code": ErrorCode.NONE, "replica_election_results": results}


def outcome(hosted_topics: HostedTopics, topic: str, number: int) -> Body:
    """The answer for one partition."""
    code, why = ErrorCode.ELECTION_NOT_NEEDED, "the only broker leads it"
    if hosted_topics.find(topic, number) is None:
        code, why = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
    return {"partition_id": number, "error_code": code, "error_message": why}


ROUTE = Route(SCHEMA, elect_leaders)
