"""From a frame to its handler, and from what the handler returns to the response."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from faircopy.api.context import Body, Context
from faircopy.api.large_requests import LargeRequests
from faircopy.api.refusals import is_logged, log_refusals
from faircopy.errors import FaircopyError
from faircopy.loop.pace import ClientGone
from faircopy.net.connection import Exchange
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.api_versions import api_versions_body, api_versions_too_new_body, is_advertised, newest
from faircopy.wire.codec import MalformedMessage, Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import encode_fetch_response
from faircopy.wire.messages import (
    RequestHeader,
    decode_request,
    decode_request_on_thread,
    encode_response,
    read_request_header,
)

LARGE_FRAME_BYTES = 16 << 10
LARGE_ELEMENTS = 500
LAST_REQUESTS_SECONDS = 5
NEWEST_FETCH = newest(ApiKey.FETCH)

log = logging.getLogger(__name__)

Handler = Callable[[Message, Context], Awaitable[Body]]
# Returns what is left to do, if the request is a long one.
HotHandler = Callable[[Exchange, RequestHeader, memoryview], Awaitable[None] | None]


class UnknownApi(FaircopyError):
    """A request for an API or a version that was not advertised.

    As with Kafka, it costs its connection: there is no answer that its client is sure to understand.
    """


class Dispatcher:
    """Gives each request to the handler of its API. The hot ones answer by themselves."""

    def __init__(
        self,
        hot: Mapping[ApiKey, HotHandler],
        handlers: Mapping[ApiKey, Handler],
        loop: asyncio.AbstractEventLoop,
        large: LargeRequests,
    ) -> None:
        self._hot = {int(key): handler for key, handler in hot.items()}
        self._handlers = {int(key): handler for key, handler in handlers.items()}
        self._loop = loop
        self._large = large
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, exchange: Exchange, frame: memoryview) -> None:
        """Take one request."""
        try:
            header = read_request_header(frame)
            hot = self._hot.get(header.api_key)
            if hot is not None and is_advertised(header.api_key, header.api_version):
                rest = hot(exchange, header, frame)
                if rest is not None:
                    self._start(self._finish(rest, exchange))
            elif header.api_key == ApiKey.FETCH and header.api_version > NEWEST_FETCH:
                # All newer versions known today begin as this one does, so their clients can read the error.
                response = encode_fetch_response(NEWEST_FETCH, header.correlation_id, (), ErrorCode.UNSUPPORTED_VERSION)
                exchange.answer(response)
            else:
                self._handle_cold(exchange, header, frame)
        except FaircopyError as error:
            self._refuse(exchange, error)
        except Exception as error:
            self._fail(exchange, error)

    def _handle_cold(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        if header.api_key == ApiKey.API_VERSIONS:
            self._api_versions(exchange, header, frame)
            return
        handler = self._handlers.get(header.api_key)
        if handler is None or not (
            header.api_key in (ApiKey.INSPECT, ApiKey.BACKUP) or is_advertised(header.api_key, header.api_version)
        ):
            raise UnknownApi(f"API {header.api_key} version {header.api_version} is not one that was advertised")
        connection = exchange.connection
        context = Context(
            header.api_version,
            header.client_id or "",
            connection.peer,
            connection.number,
            header.correlation_id,
            connection.advertised,
            self._large.pace_for(connection),
            functools.partial(setattr, exchange, "when_lost"),
        )
        # What is large is decoded and encoded on a thread, one message at a time.
        request = None
        if len(frame) <= LARGE_FRAME_BYTES:
            request = decode_request(header.api_key, header.api_version, frame, header.body_at)
        self._start(self._run(handler, request, frame, context, exchange, header))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, rest: Awaitable[None], exchange: Exchange) -> None:
        try:
            await rest
        except Exception as error:
            self._give_up(exchange, error)

    async def _run(
        self,
        handler: Handler,
        request: Message | None,
        frame: memoryview,
        context: Context,
        exchange: Exchange,
        header: RequestHeader,
    ) -> None:
        try:
            if request is None:
                request = await self._large.run(
                    decode_request_on_thread, header.api_key, header.api_version, frame, header.body_at
                )
                context.pace.ensure_wanted()
            del frame  # the answer may take long, of a JoinGroup for one
            body = await handler(request, context)
            if is_logged():
                log_refusals(header.api_key, context.client_id, context.client_host, body)
            message = (header.api_key, header.api_version, header.correlation_id, body)
            if count_up_to(LARGE_ELEMENTS, (body,)) < LARGE_ELEMENTS:
                response = encode_response(*message)
            else:
                response = await self._large.run(encode_response, *message)
            exchange.answer(response)
        except Exception as error:
            self._give_up(exchange, error)

    async def close(self) -> None:
        """End what is in the works: wait for it for a moment, then cancel it. No connection is open any more."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_REQUESTS_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _api_versions(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        if is_advertised(header.api_key, header.api_version):
            decode_request(header.api_key, header.api_version, frame, header.body_at)
            body, version = api_versions_body(), header.api_version
        else:
            body, version = api_versions_too_new_body(), 0
        exchange.answer(encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, body))

    def _give_up(self, exchange: Exchange, error: Exception) -> None:
        """A request has no answer."""
        match error:
            case ClientGone():
                exchange.answer(None)
            case MalformedMessage():
                self._refuse(exchange, error)
            case _:
                self._fail(exchange, error)

    def _refuse(self, exchange: Exchange, error: FaircopyError) -> None:
        """The client does not keep to the protocol: as Kafka does, close its connection."""
        exchange.connection.complain(error)
        self._drop(exchange)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """A bug of ours, or the disk: tell the log all, and let the client come back."""
        log.error("a request of %s failed", exchange.connection.peer, exc_info=error)
        self._drop(exchange)

    def _drop(self, exchange: Exchange) -> None:
        if not exchange.is_answered:
            exchange.answer(None)
        exchange.connection.close()


def count_up_to(most: int, bodies: Sequence[Any]) -> int:
    """How many elements the lists in these have in all, by the fields of the first; not counted beyond `most`."""
    found = 0
    if bodies and isinstance(bodies[0], dict):
        for name in [name for name, value in bodies[0].items() if isinstance(value, (list, tuple))]:
            for body in bodies:
                inner = body.get(name) or ()
                found += len(inner)
                if found < most:
                    found += count_up_to(most - found, inner)
                if found >= most:
                    return found
    return found
