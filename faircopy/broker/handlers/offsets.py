"""ListOffsets and OffsetForLeaderEpoch: where logs begin and end, and what stands where in time."""

from __future__ import annotations

import asyncio

from faircopy.broker.catalog import Catalog, HostedPartition
from faircopy.broker.handlers.context import LEADER_EPOCH, Body, Context, Message
from faircopy.datalog.read import DamagedLog
from faircopy.datalog.time_search import find_time
from faircopy.errors import FaircopyError
from faircopy.storage.clock import Clock
from faircopy.storage.disk import Disk
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
CATCH_UP_MS = 10_000
CATCH_UP_POLL_SECONDS = 0.001


class OffsetHandlers:
    """Answers about offsets."""

    def __init__(self, catalog: Catalog, disk: Disk, clock: Clock) -> None:
        self._catalog = catalog
        self._disk = disk
        self._clock = clock

    async def list_offsets(self, request: Message, context: Context) -> Body:
        """ListOffsets."""
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        await self._list(topic.name, asked, request.isolation_level) for asked in topic.partitions
                    ],
                }
                for topic in request.topics
            ]
        }

    async def _list(self, topic: str, asked: Message, isolation_level: int) -> Body:
        answer = {"partition_index": asked.partition_index}
        partition = self._catalog.find(topic, asked.partition_index)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if partition.failure is not None:
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}
        if asked.current_leader_epoch > LEADER_EPOCH:
            return answer | {"error_code": ErrorCode.UNKNOWN_LEADER_EPOCH}
        try:
            return answer | {"error_code": 0} | await self._find(partition, asked.timestamp, isolation_level)
        except TimeoutError:
            return answer | {"error_code": ErrorCode.REQUEST_TIMED_OUT}
        except FaircopyError as error:
            if isinstance(error, DamagedLog | DamagedState):
                self._catalog.stop(partition, error)
            return answer | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}

    async def _find(self, partition: HostedPartition, timestamp: int, isolation_level: int) -> Body:
        log = partition.log
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return {"offset": log.start_offset, "timestamp": -1, "leader_epoch": LEADER_EPOCH}
        await self._catch_up(partition)
        if timestamp == LATEST:
            return {"offset": partition.end_for(isolation_level), "timestamp": -1, "leader_epoch": LEADER_EPOCH}
        wanted = log.index.greatest_time_ms if timestamp == MAX_TIMESTAMP else timestamp
        found = await find_time(log, self._disk, wanted) if log.end_offset > log.start_offset else None
        if found is None:
            return {"offset": -1, "timestamp": -1, "leader_epoch": -1}
        return {"offset": found.offset, "timestamp": found.timestamp_ms, "leader_epoch": LEADER_EPOCH}

    async def _catch_up(self, partition: HostedPartition) -> None:
        """Wait until all that was acked by now is visible (P8). Raises TimeoutError."""
        state, log = partition.state, partition.log
        deadline_ms = self._clock.monotonic_ms() + CATCH_UP_MS
        prepared = set(state.prepared)
        while prepared & state.prepared:
            await self._pause(deadline_ms)
        target = state.next_offset
        while log.end_offset < target and partition.failure is None:
            await self._pause(deadline_ms)

    async def _pause(self, deadline_ms: float) -> None:
        if self._clock.monotonic_ms() > deadline_ms:
            raise TimeoutError
        await asyncio.sleep(CATCH_UP_POLL_SECONDS)

    async def offset_for_leader_epoch(self, request: Message, context: Context) -> Body:
        """OffsetForLeaderEpoch (KIP-101)."""
        return {
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": [self._end_of_epoch(topic.topic, asked) for asked in topic.partitions],
                }
                for topic in request.topics
            ]
        }

    def _end_of_epoch(self, topic: str, asked: Message) -> Body:
        answer = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
        partition = self._catalog.find(topic, asked.partition)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if asked.leader_epoch > LEADER_EPOCH:
            return answer | {"error_code": ErrorCode.NONE}
        return answer | {
            "error_code": ErrorCode.NONE,
            "leader_epoch": LEADER_EPOCH,
            "end_offset": partition.log.end_offset,
        }
