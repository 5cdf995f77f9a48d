"""ListOffsets and OffsetForLeaderEpoch: where logs begin and end, and what stands where in time."""

from __future__ import annotations

import asyncio
from collections import Counter

from faircopy.api.context import LEADER_EPOCH, Body, Context, Message
from faircopy.api.read_your_commits import NotCaughtUp, catch_up
from faircopy.datalog.read import DamagedLog
from faircopy.datalog.time_search import find_time
from faircopy.errors import FaircopyError
from faircopy.hosting.catalog import Catalog, HostedPartition
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
FIRST_VERSION = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
NOWHERE: Body = {"offset": -1, "timestamp": -1, "leader_epoch": -1}
NEVER = 1 << 15
SEARCHES_AT_ONCE = 2  # by time: they may take long, and the disk's other threads have commits to write


class OffsetHandlers:
    """Answers about offsets."""

    def __init__(self, catalog: Catalog, disk: Disk, clock: Clock) -> None:
        self._catalog = catalog
        self._disk = disk
        self._clock = clock
        self._searches = asyncio.Semaphore(SEARCHES_AT_ONCE)

    async def list_offsets(self, request: Message, context: Context) -> Body:
        """ListOffsets. Its timeout (version 10) is for reading from tiered storage, which there is none of."""
        times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
        repeated = {place for place, count in times.items() if count > 1}
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        await self._list(topic.name, asked, request.isolation_level, context.version)
                        if (topic.name, asked.partition_index) not in repeated
                        else {"partition_index": asked.partition_index, "error_code": ErrorCode.INVALID_REQUEST}
                        async for asked in context.pace.over(topic.partitions)
                    ],
                }
                async for topic in context.pace.over(request.topics)
            ]
        }

    async def _list(self, topic: str, asked: Message, isolation_level: int, version: int) -> Body:
        answer = {"partition_index": asked.partition_index}
        if asked.timestamp < 0 and version < FIRST_VERSION.get(asked.timestamp, NEVER):
            return answer | {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        partition = self._catalog.find(topic, asked.partition_index)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if partition.failure is not None:
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}
        if asked.current_leader_epoch > LEADER_EPOCH:
            return answer | {"error_code": ErrorCode.UNKNOWN_LEADER_EPOCH}
        start_offset = partition.log.start_offset
        try:
            return answer | {"error_code": 0} | await self._find(partition, asked.timestamp, isolation_level)
        except NotCaughtUp:
            return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
        except FaircopyError as error:
            # What goes while it is searched is not damaged, and the client asks again.
            if isinstance(error, DamagedLog | DamagedState) and partition.log.start_offset == start_offset:
                self._catalog.stop(partition, error)
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}

    async def _find(self, partition: HostedPartition, timestamp: int, isolation_level: int) -> Body:
        log = partition.log
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return {"offset": log.start_offset, "timestamp": -1, "leader_epoch": LEADER_EPOCH}
        if timestamp == LATEST_TIERED:
            return NOWHERE
        await catch_up(partition, self._clock)
        if timestamp == LATEST:
            return {"offset": partition.end_for(isolation_level), "timestamp": -1, "leader_epoch": LEADER_EPOCH}
        wanted = log.index.greatest_time_ms if timestamp == MAX_TIMESTAMP else timestamp
        async with self._searches:
            found = await find_time(log, self._disk, wanted) if log.end_offset > log.start_offset else None
        if found is None:
            return NOWHERE
        return {"offset": found.offset, "timestamp": found.timestamp_ms, "leader_epoch": LEADER_EPOCH}

    async def offset_for_leader_epoch(self, request: Message, context: Context) -> Body:
        """OffsetForLeaderEpoch (KIP-101)."""
        return {
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": [
                        await self._end_of_epoch(topic.topic, asked)
                        async for asked in context.pace.over(topic.partitions)
                    ],
                }
                async for topic in context.pace.over(request.topics)
            ]
        }

    async def _end_of_epoch(self, topic: str, asked: Message) -> Body:
        answer = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
        partition = self._catalog.find(topic, asked.partition)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if asked.leader_epoch > LEADER_EPOCH:
            return answer | {"error_code": ErrorCode.NONE}
        try:
            await catch_up(partition, self._clock)
        except NotCaughtUp:
            return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
        except FaircopyError:
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}
        return answer | {
            "error_code": ErrorCode.NONE,
            "leader_epoch": LEADER_EPOCH,
            "end_offset": partition.log.end_offset,
        }
