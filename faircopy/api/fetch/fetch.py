"""Fetch: the hot path out. If there is enough to send, it is sent at once; otherwise the request waits.

Requests and responses have a codec of their own (`wire/fetch.py`). Its tests compare it with the schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from faircopy.api.fetch.answer import (
    INLINE_READ_BYTES,
    Answer,
    FetchPlanner,
    find_all,
    refuse_session,
    send,
    total_bytes,
)
from faircopy.api.fetch.many_partitions import fetch_many
from faircopy.api.fetch.sessions import Asking, FetchSessions, SessionRefused
from faircopy.datalog.check import needs_check
from faircopy.datalog.read import read_batches, read_from_cache
from faircopy.errors import FaircopyError
from faircopy.net.exchange import Exchange
from faircopy.partition.hosted import HostedPartition
from faircopy.serving.parts import Parts
from faircopy.serving.route import HotHandler, HotRoute, UnknownApi
from faircopy.storage.file import FileRange, NotCached
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import FetchRequest, encode_fetch_response, read_fetch_request
from faircopy.wire.messages import RequestHeader
from faircopy.wire.schema import Schema

LARGE_FRAME_BYTES = 8 << 10
MANY_PARTITIONS = 300

SCHEMA = Schema("""
api 1 Fetch 4-18 flexible 12+
  request
    cluster_id                      string?    12+    tag 0 = null
    replica_id                      int32      0-14   = -1
    replica_state                   {}         15+    tag 1
        replica_id                  int32             = -1
        replica_epoch               int64             = -1
    max_wait_ms                     int32
    min_bytes                       int32
    max_bytes                       int32             = 2147483647
    isolation_level                 int8              = 0
    session_id                      int32      7+     = 0
    session_epoch                   int32      7+     = -1
    topics                          []
        topic                       string     0-12
        topic_id                    uuid       13+
        partitions                  []
            partition               int32
            current_leader_epoch    int32      9+     = -1
            fetch_offset            int64
            last_fetched_epoch      int32      12+    = -1
            log_start_offset        int64      5+     = -1
            partition_max_bytes     int32
            replica_directory_id    uuid       17+    tag 0 = zero
            high_watermark          int64      18+    tag 1 = 9223372036854775807
    forgotten_topics_data           []         7+     = []
        topic                       string     0-12
        topic_id                    uuid       13+
        partitions                  []int32
    rack_id                         string     11+    = ""
  response
    throttle_time_ms                int32             = 0
    error_code                      int16      7+
    session_id                      int32      7+     = 0
    responses                       []
        topic                       string     0-12
        topic_id                    uuid       13+
        partitions                  []
            partition_index         int32
            error_code              int16
            high_watermark          int64
            last_stable_offset      int64             = -1
            log_start_offset        int64      5+     = -1
            diverging_epoch         {}         12+    tag 0
                epoch               int32             = -1
                end_offset          int64             = -1
            current_leader          {}         12+    tag 1
                leader_id           int32             = -1
                leader_epoch        int32             = -1
            snapshot_id             {}         12+    tag 2
                end_offset          int64             = -1
                epoch               int32             = -1
            aborted_transactions    []?               = null
                producer_id         int64
                first_offset        int64
            preferred_read_replica  int32      11+    = -1
            records                 records?
    node_endpoints                  []         16+    tag 0 = []
        node_id                     int32
        host                        string
        port                        int32
        rack                        string?           = null
""")
VERSIONS = range(SCHEMA.versions.first, SCHEMA.versions.last + 1)


class PendingFetch:
    """A Fetch request without an answer."""

    def __init__(
        self, handler: FetchHandler, exchange: Exchange, header: RequestHeader, asking: Asking
    ) -> None:
        self._handler = handler
        self._exchange = exchange
        self._header = header
        self._asking = asking
        self._watched: list[HostedPartition] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False

    def start(self) -> None:
        """Answer now if there is enough to send; otherwise when there is, or when time is up."""
        answer = self._make_answer()
        if answer.is_enough:
            self._read(answer)
            return
        for asked in self._asking.partitions:
            partition = self._handler.planner.find(asked)
            if partition is not None:
                partition.log.watch(self._changed)
                self._watched.append(partition)
        self._timer = self._handler.loop.call_later(self._asking.request.max_wait_ms / 1000, self._time_is_up)
        self._exchange.when_lost = self._abandon

    def _changed(self) -> None:
        """A log has grown. Look again, once per tick, however many logs have."""
        if not self._is_due:
            self._is_due = True
            self._handler.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_due = False
        if not self._watched:
            return
        answer = self._make_answer()
        if answer.is_enough:
            self._stop_waiting()
            self._read(answer)

    def _abandon(self) -> None:
        """The client is gone: stop waiting."""
        self._stop_waiting()
        self._exchange.answer(None)

    def _time_is_up(self) -> None:
        self._stop_waiting()
        self._read(self._make_answer())

    def _stop_waiting(self) -> None:
        self._exchange.when_lost = None
        for partition in self._watched:
            partition.log.unwatch(self._changed)
        self._watched = []
        if self._timer is not None:
            self._timer.cancel()

    def _make_answer(self) -> Answer:
        answer = Answer(self._handler.planner, self._asking)
        for asked in self._asking.partitions:
            answer.add(asked)
        return answer

    # -- reading ---------------------------------------------------------------------------------------------

    def _read(self, answer: Answer) -> None:
        is_small = total_bytes(answer.to_read) <= INLINE_READ_BYTES
        if is_small and not any(needs_check(read.plan, read.max_bytes) for read in answer.to_read):
            try:
                room = answer.room()
                for read in answer.to_read:
                    max_bytes, may_exceed = room.for_partition(read.max_bytes)
                    found = read_batches(read.plan, max_bytes, read_from_cache, may_exceed=may_exceed)
                    room.take(len(found))
                    answer.take(read, found)
                self._send(answer)
                return
            except NotCached:
                answer = self._make_answer()
            except FaircopyError:
                pass
        self._handler.disk.submit(
            find_all,
            (answer.to_read, answer.room(), is_small),
            lambda outcomes, error: self._found(answer, outcomes, error),
        )

    def _found(
        self,
        answer: Answer,
        outcomes: list[bytes | FileRange | FaircopyError] | None,
        error: BaseException | None,
    ) -> None:
        if outcomes is None:
            self._handler.fail(self._exchange, error)
            return
        for read, outcome in zip(answer.to_read, outcomes, strict=True):
            answer.take(read, outcome)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        send(self._exchange, answer.encoded(self._header))


class FetchHandler:
    """Handles Fetch requests. `planner` decides what readers get."""

    def __init__(self, parts: Parts, planner: FetchPlanner) -> None:
        self.planner = planner
        self.disk = parts.disk
        self.loop = parts.loop
        self._sessions = FetchSessions()
        self._parts = parts

    def handle(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> Awaitable[None] | None:
        """Handle a request. It is answered later. If there is much work, the rest of it is returned.

        Raises MalformedMessage.
        """
        if len(frame) > LARGE_FRAME_BYTES:
            return self._read_and_answer(exchange, header, frame)
        return self._answer(exchange, header, read_fetch_request(header.api_version, frame, header.body_at))

    async def _read_and_answer(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        """Handle a request that takes long to read."""
        run = self._parts.large_requests.run
        request = await run(read_fetch_request, header.api_version, frame, header.body_at)
        following = self._answer(exchange, header, request)
        if following is not None:
            await following

    def _answer(
        self, exchange: Exchange, header: RequestHeader, request: FetchRequest
    ) -> Awaitable[None] | None:
        try:
            asking = self._sessions.ask(exchange.connection, request)
        except SessionRefused as refused:
            refuse_session(exchange, header, refused)
            return None
        if len(asking.partitions) > MANY_PARTITIONS:
            return fetch_many(self._parts, self.planner, exchange, header, asking)
        PendingFetch(self, exchange, header, asking).start()
        return None

    def fail(self, exchange: Exchange, error: BaseException | None) -> None:
        """Log a bug of ours, and close the connection: the client will come back."""
        self.loop.call_exception_handler({"message": "Fetch failed", "exception": error})
        exchange.answer(None)
        exchange.connection.close()


def refuse(exchange: Exchange, header: RequestHeader) -> None:
    """Refuse a version. All newer ones known today start like our newest, so clients can read the error."""
    if header.api_version < VERSIONS[0]:
        raise UnknownApi(f"Fetch version {header.api_version} is older than {VERSIONS[0]}")
    code = ErrorCode.UNSUPPORTED_VERSION
    exchange.answer(encode_fetch_response(VERSIONS[-1], header.correlation_id, (), code))


def make_handler(parts: Parts) -> HotHandler:
    """The handler of a broker's Fetch requests."""
    return FetchHandler(parts, FetchPlanner(parts.hosted, parts.settings)).handle


ROUTE = HotRoute(SCHEMA, make_handler, VERSIONS, refuse)
