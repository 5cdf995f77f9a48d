"""DeleteRecords: move the start of logs (KIP-107)."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.hosting.read_your_commits import NotCaughtUp, catch_up
from faircopy.loop.waiting import tell
from faircopy.serving.codes import code_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 21 DeleteRecords 0-2 flexible 2+
  request
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            offset           int64
    timeout_ms               int32
  response
    throttle_time_ms         int32             = 0
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            low_watermark    int64
            error_code       int16
""")


HIGH_WATERMARK = -1
AT_ONCE = 50


async def delete_records(request: Message, context: Context) -> Body:
    """DeleteRecords: move the start of logs."""
    topics: list[Body] = []
    waiting: list[Trim] = []
    async for topic in context.pace.through(request.topics):
        topics.append({"name": topic.name, "partitions": []})
        async for asked in context.pace.through(topic.partitions):
            waiting.append(Trim(topic.name, asked, topics[-1]["partitions"]))
            if len(waiting) == AT_ONCE:
                await trim_all(context.parts, waiting)
    await trim_all(context.parts, waiting)
    return {"topics": topics}


class Trim(NamedTuple):
    """A partition whose start is to be moved, and the rows to which its answer is added."""

    topic: str
    asked: Message
    rows: list[Body]


async def trim_all(parts: Parts, waiting: list[Trim]) -> None:
    """Move the starts of all these logs. They share writes to the disk."""
    answers = await asyncio.gather(*(trim(parts, each.topic, each.asked) for each in waiting))
    for each, answer in zip(waiting, answers, strict=True):
        each.rows.append(answer)
    waiting.clear()


async def trim(parts: Parts, topic: str, asked: Message) -> Body:
    """Move the start of one partition's log, durably."""
    answer = {"partition_index": asked.partition_index, "low_watermark": -1}
    partition = parts.hosted.find(topic, asked.partition_index)
    if partition is None:
        return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if not parts.hosted.known(topic).is_deleted_from:
        return answer | {"error_code": ErrorCode.POLICY_VIOLATION}  # as Kafka: state is restored from it
    log = partition.log
    try:
        if asked.offset == HIGH_WATERMARK or asked.offset > log.end_offset:
            await catch_up(partition, parts.clock)
        partition.ensure_replicable()
    except NotCaughtUp:
        return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
    except FaircopyError as error:
        return answer | {"error_code": code_of(error)}
    offset = log.end_offset if asked.offset == HIGH_WATERMARK else asked.offset
    if not 0 <= offset <= log.end_offset:
        return answer | {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE}
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partition.trim(offset, lambda: tell(done))
    await done
    return answer | {"low_watermark": max(log.start_offset, offset), "error_code": ErrorCode.NONE}


ROUTE = Route(SCHEMA, delete_records)
