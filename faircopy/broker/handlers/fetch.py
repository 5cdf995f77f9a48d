"""Fetch: the hot path out. Whole runs of batches, as they stand in the log, without a look inside."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from faircopy.broker.catalog import Catalog, HostedPartition
from faircopy.broker.connection import Exchange
from faircopy.broker.settings import Settings
from faircopy.cluster.topics import UnknownTopic
from faircopy.datalog.check import check_up_to, needs_check
from faircopy.datalog.log import OffsetOutOfRange
from faircopy.datalog.read import DamagedLog, ReadPlan, find_batches, read_batches, read_from_cache, read_from_disk
from faircopy.errors import FaircopyError
from faircopy.storage.disk import Disk
from faircopy.storage.files import FileRange, NotCached
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResult,
    encode_fetch_response,
    read_fetch_request,
)
from faircopy.wire.messages import RequestHeader

INLINE_READ_BYTES = 256 << 10
LEADER_EPOCH = 0
READ_COMMITTED = 1


class ToRead(NamedTuple):
    """One partition's share of an answer: where in the results it goes, what to read, and how much of it."""

    number: int
    partition: HostedPartition
    plan: ReadPlan
    max_bytes: int


class Operation:
    """One Fetch request in the works."""

    def __init__(self, handler: FetchHandler, exchange: Exchange, header: RequestHeader, request: FetchRequest) -> None:
        self._handler = handler
        self._exchange = exchange
        self._header = header
        self._request = request
        self._watched: list[HostedPartition] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False

    def start(self) -> None:
        """Answer now if there is enough to send, else when there is or when time is up."""
        if self._enough():
            self._read()
            return
        for asked in self._request.partitions:
            partition = self._handler.catalog.find(asked.topic, asked.partition)
            if partition is not None:
                partition.log.watch(self._changed)
                self._watched.append(partition)
        self._timer = self._handler.loop.call_later(self._request.max_wait_ms / 1000, self._finish_waiting)
        self._exchange.when_lost = self._abandon

    def _changed(self) -> None:
        """A log grew. Look once in a tick, however many did."""
        if not self._is_due:
            self._is_due = True
            self._handler.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_due = False
        if self._watched and self._enough():
            self._finish_waiting()

    def _abandon(self) -> None:
        """The client is gone: wait no longer."""
        self._stop_waiting()
        self._exchange.answer(None)

    def _finish_waiting(self) -> None:
        self._stop_waiting()
        self._read()

    def _stop_waiting(self) -> None:
        self._exchange.when_lost = None
        for partition in self._watched:
            partition.log.unwatch(self._changed)
        self._watched = []
        if self._timer is not None:
            self._timer.cancel()

    def _enough(self) -> bool:
        if self._request.max_wait_ms <= 0 or not self._request.partitions:
            return True
        available = 0
        for asked in self._request.partitions:
            try:
                plan = self._handler.plan(asked, self._request.isolation_level)[1]
            except FaircopyError:
                return True
            if plan is not None:
                available += max(plan.available_bytes, 1)
        return available >= max(self._request.min_bytes, 1)

    # -- reading -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        results, to_read = self._plan_all()
        is_small = total_bytes(to_read) <= INLINE_READ_BYTES
        if is_small and not any(needs_check(read.plan, read.max_bytes) for read in to_read):
            try:
                for read in to_read:
                    self._take(results, read, read_batches(read.plan, read.max_bytes, read_from_cache))
                self._answer(results)
                return
            except NotCached:
                results, to_read = self._plan_all()
            except FaircopyError:
                pass
        self._handler.disk.submit(
            find_all, (to_read, is_small), lambda outcomes, error: self._found(results, to_read, outcomes, error)
        )

    def _plan_all(self) -> tuple[list[FetchResult], list[ToRead]]:
        results: list[FetchResult] = []
        to_read: list[ToRead] = []
        left = min(self._request.max_bytes, self._handler.settings.fetch_max_bytes)
        for asked in self._request.partitions:
            try:
                partition, plan = self._handler.plan(asked, self._request.isolation_level)
            except FaircopyError as error:
                results.append(self._handler.refusal(asked, error))
                continue
            # KIP-74: one batch in any case, so that a large one can't block; then as much as fits.
            if plan is not None and (left > 0 or not to_read):
                max_bytes = max(min(asked.partition_max_bytes, left), 0)
                to_read.append(ToRead(len(results), partition, plan, max_bytes))
                left -= min(plan.available_bytes, max_bytes)
            results.append(result_of(asked, partition))
        return results, to_read

    def _take(self, results: list[FetchResult], read: ToRead, records: bytes | FileRange) -> None:
        aborted = read.partition.aborted_in(records, read.plan.offset) if self._request.isolation_level else ()
        results[read.number] = results[read.number]._replace(records=[records], aborted=aborted)

    def _found(
        self,
        results: list[FetchResult],
        to_read: list[ToRead],
        outcomes: list[bytes | FileRange | FaircopyError] | None,
        error: BaseException | None,
    ) -> None:
        if outcomes is None:
            self._handler.fail(self._exchange, error)
            return
        for read, outcome in zip(to_read, outcomes, strict=True):
            if isinstance(outcome, FaircopyError):
                self._handler.catalog.stop(read.partition, outcome)
                results[read.number] = results[read.number]._replace(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                self._take(results, read, outcome)
        self._answer(results)

    def _answer(self, results: list[FetchResult]) -> None:
        header = self._header
        response = encode_fetch_response(header.api_version, header.correlation_id, results)
        if any(isinstance(piece, FileRange) for piece in response):
            self._exchange.answer_from_files(response)
        else:
            self._exchange.answer(response)


def total_bytes(to_read: list[ToRead]) -> int:
    """About how much will be read."""
    return sum(min(read.max_bytes, read.plan.available_bytes) for read in to_read)


def find_all(to_read: list[ToRead], in_memory: bool) -> list[bytes | FileRange | FaircopyError]:
    """Each plan's batches, checked: read, or only where they lie. Blocks."""
    outcomes: list[bytes | FileRange | FaircopyError] = []
    for read in to_read:
        try:
            found = find_batches(read.plan, read.max_bytes, read_from_disk)
            check_up_to(read.plan, found.position + found.size)
            outcomes.append(found.file.read(found.size, found.position) if in_memory else found)
        except FaircopyError as error:
            outcomes.append(error)
    return outcomes


def result_of(asked: FetchPartition, partition: HostedPartition) -> FetchResult:
    """An answer without records."""
    end, stable, start = partition.log.end_offset, partition.end_for(READ_COMMITTED), partition.log.start_offset
    return FetchResult(asked.topic, asked.partition, 0, end, stable, start, [])


class FetchHandler:
    """Takes Fetch requests. Both isolation levels get the same (P1)."""

    def __init__(self, catalog: Catalog, settings: Settings, disk: Disk, loop: asyncio.AbstractEventLoop) -> None:
        self.catalog = catalog
        self.settings = settings
        self.disk = disk
        self.loop = loop

    def handle(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        """Take a request; the exchange is answered later. Raises MalformedMessage."""
        request = read_fetch_request(header.api_version, frame, header.body_at)
        if request.session_id:
            # No fetch sessions: without an id of ours there is none to go on with.
            exchange.answer(
                encode_fetch_response(
                    header.api_version, header.correlation_id, [], ErrorCode.FETCH_SESSION_ID_NOT_FOUND
                )
            )
            return
        Operation(self, exchange, header, request).start()

    def plan(self, asked: FetchPartition, isolation_level: int) -> tuple[HostedPartition, ReadPlan | None]:
        """Where to read. Raises UnknownTopic, OffsetOutOfRange, and what stopped the partition."""
        partition = self.catalog.find(asked.topic, asked.partition)
        if partition is None:
            raise UnknownTopic(f"there is no partition {asked.topic}-{asked.partition}")
        if partition.failure is not None:
            raise partition.failure
        if asked.current_leader_epoch > LEADER_EPOCH:
            raise UnknownEpoch(f"leader epoch {asked.current_leader_epoch} is newer than {LEADER_EPOCH}")
        try:
            return partition, partition.plan_read(asked.fetch_offset, isolation_level)
        except (DamagedLog, DamagedState) as error:
            self.catalog.stop(partition, error)
            raise

    def refusal(self, asked: FetchPartition, error: FaircopyError) -> FetchResult:
        """The answer for a partition that can't be read."""
        partition = self.catalog.find(asked.topic, asked.partition)
        if isinstance(error, OffsetOutOfRange) and partition is not None:
            return result_of(asked, partition)._replace(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        code = ErrorCode.KAFKA_STORAGE_ERROR
        if isinstance(error, UnknownTopic):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif isinstance(error, UnknownEpoch):
            code = ErrorCode.UNKNOWN_LEADER_EPOCH
        return FetchResult(asked.topic, asked.partition, code, -1, -1, -1, [])

    def fail(self, exchange: Exchange, error: BaseException | None) -> None:
        """A bug, not a client's fault: log it, and let the client come back."""
        self.loop.call_exception_handler({"message": "Fetch failed", "exception": error})
        exchange.answer(None)
        exchange.connection.close()


class UnknownEpoch(FaircopyError):
    """A client names a leader epoch that there has not been yet."""
