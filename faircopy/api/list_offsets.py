"""ListOffsets: the start and end of logs, and offsets by time.

Its timeout (version 10) is for reads from tiered storage, which does not exist here.
"""

from __future__ import annotations

from collections import Counter

from faircopy.datalog.read import DamagedLog
from faircopy.datalog.time_search import find_latest, find_time
from faircopy.errors import FaircopyError
from faircopy.hosting.leader_epoch import check_leader_epoch
from faircopy.hosting.read_your_commits import NotCaughtUp, catch_up
from faircopy.partition.hosted import HostedPartition
from faircopy.serving.codes import code_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 2 ListOffsets 1-10 flexible 6+
  request
    replica_id                    int32             = -1
    isolation_level               int8       2+     = 0
    topics                        []
        name                      string
        partitions                []
            partition_index       int32
            current_leader_epoch  int32      4+     = -1
            timestamp             int64
    timeout_ms                    int32      10+
  response
    throttle_time_ms              int32      2+     = 0
    topics                        []
        name                      string
        partitions                []
            partition_index       int32
            error_code            int16
            timestamp             int64             = -1
            offset                int64             = -1
            leader_epoch          int32      4+     = -1
""")


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
FIRST_VERSION = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
NOWHERE: Body = {"offset": -1, "timestamp": -1, "leader_epoch": -1}
NEVER = 1 << 15


async def list_offsets(request: Message, context: Context) -> Body:
    """ListOffsets."""
    times = Counter(
        (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
    )
    repeated = {place for place, count in times.items() if count > 1}
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    await find_offset(context.parts, topic.name, asked, context.version)
                    if (topic.name, asked.partition_index) not in repeated
                    else {"partition_index": asked.partition_index, "error_code": ErrorCode.INVALID_REQUEST}
                    async for asked in context.pace.over(topic.partitions)
                ],
            }
            async for topic in context.pace.over(request.topics)
        ]
    }


async def find_offset(parts: Parts, topic: str, asked: Message, version: int) -> Body:
    """Answer the request for one partition."""
    answer = {"partition_index": asked.partition_index}
    if asked.timestamp < 0 and version < FIRST_VERSION.get(asked.timestamp, NEVER):
        return answer | {"error_code": ErrorCode.UNSUPPORTED_VERSION}
    partition = parts.hosted.find(topic, asked.partition_index)
    if partition is None:
        return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if partition.failure is not None:
        return answer | {"error_code": code_of(partition.failure)}
    code = check_leader_epoch(asked.current_leader_epoch, partition.leader_epoch)
    if code is not ErrorCode.NONE:
        return answer | {"error_code": code}
    start_offset = partition.log.start_offset
    try:
        return answer | {"error_code": 0} | await find(parts, partition, asked.timestamp)
    except NotCaughtUp:
        return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
    except FaircopyError as error:
        if partition.failure is not None:
            # It was deleted, or lost its leader, during the search: its files may be another one's now.
            return answer | {"error_code": code_of(partition.failure)}
        # If retention moved the start during the search, the log is not damaged: the client asks again.
        if isinstance(error, DamagedLog | DamagedState) and partition.log.start_offset == start_offset:
            parts.hosted.stop(partition, error)
        return answer | {"error_code": code_of(error)}


async def find(parts: Parts, partition: HostedPartition, timestamp: int) -> Body:
    """The offset for a time, or for one of the special timestamps. Both isolation levels get the same (P1).

    Raises NotCaughtUp, DamagedLog, DamagedState.
    """
    log = partition.log
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return place(partition, log.start_offset)
    if timestamp == LATEST_TIERED:
        return NOWHERE
    await catch_up(partition, parts.clock)
    if timestamp == LATEST:
        return place(partition, log.end_offset)
    async with parts.time_searches:
        if timestamp == MAX_TIMESTAMP:
            found = await find_latest(log, parts.disk)
        else:
            found = await find_time(log, parts.disk, timestamp)
    if found is None:
        return NOWHERE
    return place(partition, found.offset, found.timestamp_ms)


def place(partition: HostedPartition, offset: int, timestamp_ms: int = -1) -> Body:
    """The answer for an offset, with the leader epoch that wrote it or will write it."""
    epoch = partition.epochs.epoch_at(offset)
    return {"offset": offset, "timestamp": timestamp_ms, "leader_epoch": epoch}


ROUTE = Route(SCHEMA, list_offsets)
