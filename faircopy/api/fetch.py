"""Fetch: the hot path out. What is there is sent at once; else the request waits until there is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from faircopy.api.fetch_answer import (
    INLINE_READ_BYTES,
    Answer,
    FetchPlanner,
    find_all,
    send,
    total_bytes,
)
from faircopy.api.large_fetch import fetch_many
from faircopy.api.large_requests import LargeRequests
from faircopy.datalog.check import needs_check
from faircopy.datalog.read import read_batches, read_from_cache
from faircopy.errors import FaircopyError
from faircopy.hosting.catalog import HostedPartition
from faircopy.net.connection import Exchange
from faircopy.storage.disk import Disk
from faircopy.storage.files import FileRange, NotCached
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import FetchRequest, encode_fetch_response, read_fetch_request
from faircopy.wire.messages import RequestHeader

LARGE_FRAME_BYTES = 8 << 10  # some hundred partitions


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
        answer = self._make_answer()
        if answer.is_enough:
            self._read(answer)
            return
        for asked in self._request.partitions:
            partition = self._handler.planner.catalog.find(asked.topic, asked.partition)
            if partition is not None:
                partition.log.watch(self._changed)
                self._watched.append(partition)
        self._timer = self._handler.loop.call_later(self._request.max_wait_ms / 1000, self._time_is_up)
        self._exchange.when_lost = self._abandon

    def _changed(self) -> None:
        """A log grew. Look once in a tick, however many did."""
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
        """The client is gone: wait no longer."""
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
        answer = Answer(self._handler.planner, self._request)
        for asked in self._request.partitions:
            answer.add(asked)
        return answer

    # -- reading -------------------------------------------------------------------------------------------------

    def _read(self, answer: Answer) -> None:
        is_small = total_bytes(answer.to_read) <= INLINE_READ_BYTES
        if is_small and not any(needs_check(read.plan, read.max_bytes) for read in answer.to_read):
            try:
                for read in answer.to_read:
                    answer.take(read, read_batches(read.plan, read.max_bytes, read_from_cache))
                self._send(answer)
                return
            except NotCached:
                answer = self._make_answer()
            except FaircopyError:
                pass
        self._handler.disk.submit(
            find_all, (answer.to_read, is_small), lambda outcomes, error: self._found(answer, outcomes, error)
        )

    def _found(
        self, answer: Answer, outcomes: list[bytes | FileRange | FaircopyError] | None, error: BaseException | None
    ) -> None:
        if outcomes is None:
            self._handler.fail(self._exchange, error)
            return
        for read, outcome in zip(answer.to_read, outcomes, strict=True):
            answer.take(read, outcome)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        header = self._header
        send(self._exchange, encode_fetch_response(header.api_version, header.correlation_id, answer.results))


class FetchHandler:
    """Takes Fetch requests."""

    def __init__(
        self, planner: FetchPlanner, disk: Disk, loop: asyncio.AbstractEventLoop, large: LargeRequests
    ) -> None:
        self.planner = planner
        self.disk = disk
        self.loop = loop
        self.large = large

    def handle(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> Awaitable[None] | None:
        """Take a request; the exchange is answered later. Returns the rest of the work, if there is much.

        Raises MalformedMessage.
        """
        if len(frame) > LARGE_FRAME_BYTES:
            return fetch_many(self, exchange, header, frame)
        request = read_fetch_request(header.api_version, frame, header.body_at)
        if request.session_id:
            self.refuse_session(exchange, header)
        else:
            Operation(self, exchange, header, request).start()
        return None

    def refuse_session(self, exchange: Exchange, header: RequestHeader) -> None:
        """No fetch sessions: without an id of ours there is none to go on with."""
        code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        exchange.answer(encode_fetch_response(header.api_version, header.correlation_id, [], code))

    def fail(self, exchange: Exchange, error: BaseException | None) -> None:
        """A bug, not a client's fault: log it, and let the client come back."""
        self.loop.call_exception_handler({"message": "Fetch failed", "exception": error})
        exchange.answer(None)
        exchange.connection.close()
