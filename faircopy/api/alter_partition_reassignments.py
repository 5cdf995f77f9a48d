"""AlterPartitionReassignments: move partitions to other brokers (KIP-455). There is one broker, so all that
can be asked for is what is there already.
"""

from __future__ import annotations

from faircopy.errors import FaircopyError
from faircopy.serving.assignments import ensure_alone
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 45 AlterPartitionReassignments 0-1 flexible 0+
  request
    timeout_ms                       int32             = 60000
    allow_replication_factor_change  bool       1+     = true
    topics                           []
        name                         string
        partitions                   []
            partition_index          int32
            replicas                 []int32?          = null
  response
    throttle_time_ms                 int32             = 0
    allow_replication_factor_change  bool       1+     = true
    error_code                       int16
    error_message                    string?           = null
    responses                        []
        name                         string
        partitions                   []
            partition_index          int32
            error_code               int16
            error_message            string?
""")


async def alter_partition_reassignments(request: Message, context: Context) -> Body:
    """AlterPartitionReassignments. Nothing changes."""
    responses = []
    async for topic in context.pace.through(request.topics):
        asked = context.pace.through(topic.partitions)
        rows = [outcome(context.parts, topic.name, each) async for each in asked]
        responses.append({"name": topic.name, "partitions": rows})
    return {
        "error_code": ErrorCode.NONE,
        "allow_replication_factor_change": request.allow_replication_factor_change,
        "responses": responses,
    }


def outcome(parts: Parts, topic: str, asked: Message) -> Body:
    """The answer for one partition."""
    answer = {"partition_index": asked.partition_index, "error_code": ErrorCode.NONE, "error_message": None}
    try:
        ensure_there_already(parts, topic, asked)
    except FaircopyError as error:
        answer |= {"error_code": code_of(error), "error_message": message_of(error)}
    return answer


def ensure_there_already(parts: Parts, topic: str, asked: Message) -> None:
    """Raise Refused unless a partition is to stay where it is. Without replicas, a move is to be given up."""
    if parts.hosted.find(topic, asked.partition_index) is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    if asked.replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition is not being moved")
    ensure_alone([asked.replicas], parts.settings.node_id)


ROUTE = Route(SCHEMA, alter_partition_reassignments)
