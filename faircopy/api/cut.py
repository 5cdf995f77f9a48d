"""faircopy's own API Cut: how far a reader of many partitions may read so that it divides no transaction.

All partitions of a request are cut together, so the answer holds only if none of them has an error. With a
limit of rows or bytes, the cut is the largest one below it; it has at least one transaction or plain message.

It is not advertised, since it is not part of Kafka's protocol.
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.datalog.log import OffsetOutOfRange
from faircopy.errors import FaircopyError
from faircopy.hosting.cuts import Range, Reader, range_of
from faircopy.hosting.largest_cut import UNLIMITED, Limit
from faircopy.hosting.read_your_commits import NotCaughtUp
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.hosted import HostedPartition
from faircopy.serving.codes import code_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import UUID_ZERO, Schema

SCHEMA = Schema("""
api 20005 Cut 0 flexible 0+
  request
    limit_rows            int64      = -1
    limit_bytes           int64      = -1
    topics                []
        topic_id          uuid       = zero
        name              string?    = null
        partitions        []
            partition     int32
            start_offset  int64      = -1
  response
    error_code            int16
    topics                []
        topic_id          uuid
        name              string?
        partitions        []
            partition     int32
            error_code    int16
            start_offset  int64
            end_offset    int64
            log_start     int64
            leader_epoch  int32
""")
NO_OFFSET = -1


class Asked(NamedTuple):
    """A partition of a request: what was found by its name or id, or the error."""

    partition: HostedPartition | None
    start_offset: int
    error_code: ErrorCode


async def cut(request: Message, context: Context) -> Body:
    """Cut. Answers topics and partitions in the order of the request."""
    pace, readers = context.pace, list[Reader]()
    are_found = True
    asked: list[list[Asked]] = []
    async for topic in pace.over(request.topics):
        asked.append([])
        async for each in pace.over(topic.partitions):
            found = find(context.parts, topic, each)
            asked[-1].append(found)
            are_found = are_found and found.error_code is ErrorCode.NONE
            if found.partition is not None:
                readers.append(Reader(found.partition, found.start_offset))
    code, ranges = ErrorCode.NONE, iter(list[Range]())
    if are_found:
        try:
            limit = Limit(limit_of(request.limit_rows), limit_of(request.limit_bytes))
            ranges = iter(await context.parts.cuts.take(readers, limit, pace))
        except FaircopyError as error:
            code = code_of_cut(error)
    return {
        "error_code": code,
        "topics": [
            {
                "topic_id": topic.topic_id,
                "name": topic.name,
                "partitions": [
                    answer(each.partition, one, next(ranges, None))
                    async for each, one in pace.over(zip(topic.partitions, rows, strict=True))
                ],
            }
            async for topic, rows in pace.over(zip(request.topics, asked, strict=True))
        ],
    }


def find(parts: Parts, topic: Message, asked: Message) -> Asked:
    """The partition, by its topic's id or name, if the reader is within its log."""
    partition = find_partition(parts, topic.topic_id, topic.name, asked.partition)
    if partition is None:
        return Asked(None, asked.start_offset, unknown(topic.topic_id))
    try:
        partition.ensure_readable()
        range_of(Reader(partition, asked.start_offset), partition.state.next_offset)
    except FaircopyError as error:
        return Asked(partition, asked.start_offset, code_of_cut(error))
    return Asked(partition, asked.start_offset, ErrorCode.NONE)


def find_partition(parts: Parts, topic_id: bytes, name: str | None, number: int) -> HostedPartition | None:
    """A partition by its topic's id, or by its name if there is no id."""
    if topic_id != UUID_ZERO:
        return parts.hosted.find_by_id(TopicIdPartition(topic_id, number))
    return parts.hosted.find(name, number) if name is not None else None


def unknown(topic_id: bytes) -> ErrorCode:
    """The code for a partition that is not there."""
    return ErrorCode.UNKNOWN_TOPIC_ID if topic_id != UUID_ZERO else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def code_of_cut(error: FaircopyError) -> ErrorCode:
    """The code for an error."""
    if isinstance(error, OffsetOutOfRange):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.REQUEST_TIMED_OUT if isinstance(error, NotCaughtUp) else code_of(error)


def limit_of(number: int) -> int:
    """A limit in a request: negative numbers stand for none."""
    return number if number >= 0 else UNLIMITED


def answer(number: int, asked: Asked, found: Range | None) -> Body:
    """The answer for one partition. Without a cut, it ends where it starts."""
    partition = asked.partition
    return {
        "partition": number,
        "error_code": asked.error_code,
        "start_offset": found.start if found else asked.start_offset,
        "end_offset": found.end if found else asked.start_offset,
        "log_start": partition.log.start_offset if partition else NO_OFFSET,
        "leader_epoch": partition.leader_epoch if partition else NO_OFFSET,
    }


ROUTE = Route(SCHEMA, cut, is_advertised=False)
