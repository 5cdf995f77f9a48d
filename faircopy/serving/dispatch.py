"""From a frame to its handler, and from the handler's result to the response."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, cast

from faircopy.errors import FaircopyError
from faircopy.loop.pace import ClientGone
from faircopy.net.exchange import Exchange
from faircopy.serving.parts import Parts
from faircopy.serving.refusals import is_logged, log_refusals
from faircopy.serving.route import Context, HotHandler, HotRoute, Route, UnknownApi
from faircopy.wire.codec import MalformedMessage, Message
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

log = logging.getLogger(__name__)


class Dispatcher:
    """Gives each request to the handler of its API. Hot handlers answer by themselves."""

    def __init__(
        self, routes: Mapping[int, Route | HotRoute], flexible_from: Mapping[int, int], parts: Parts
    ) -> None:
        self._routes = routes
        self._hot = {key: route.make(parts) for key, route in routes.items() if isinstance(route, HotRoute)}
        self._flexible_from = flexible_from
        self._parts = parts
        self._large = parts.large_requests
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, exchange: Exchange, frame: memoryview) -> None:
        """Handle one request."""
        try:
            header = read_request_header(frame, self._flexible_from)
            route = self._routes.get(header.api_key)
            if route is None:
                raise unknown(header)
            hot = self._hot.get(header.api_key)
            if hot is None:
                self._handle_cold(cast(Route, route), exchange, header, frame)
            elif header.api_version in route.versions:
                self._handle_hot(hot, exchange, header, frame)
            else:
                refuse(cast(HotRoute, route), exchange, header)
        except FaircopyError as error:
            self._refuse(exchange, error)
        except Exception as error:
            self._fail(exchange, error)

    def _handle_hot(
        self, hot: HotHandler, exchange: Exchange, header: RequestHeader, frame: memoryview
    ) -> None:
        rest = hot(exchange, header, frame)
        if rest is not None:
            self._start(self._finish(rest, exchange))

    def _handle_cold(
        self, route: Route, exchange: Exchange, header: RequestHeader, frame: memoryview
    ) -> None:
        if header.api_version not in route.versions:
            raise unknown(header)
        connection = exchange.connection
        context = Context(
            self._parts,
            header.api_version,
            header.client_id or "",
            connection.peer,
            connection.number,
            header.correlation_id,
            connection.advertised,
            self._large.pace_for(connection),
            functools.partial(setattr, exchange, "when_lost"),
        )
        # Large messages are decoded and encoded on a thread, one at a time.
        request = None
        if len(frame) <= LARGE_FRAME_BYTES:
            request = decode_request(route.schema, header.api_version, frame, header.body_at)
        self._start(self._run(route, request, frame, context, exchange, header))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._parts.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, rest: Awaitable[None], exchange: Exchange) -> None:
        try:
            await rest
        except Exception as error:
            self._give_up(exchange, error)

    async def _run(
        self,
        route: Route,
        request: Message | None,
        frame: memoryview,
        context: Context,
        exchange: Exchange,
        header: RequestHeader,
    ) -> None:
        try:
            if request is None:
                request = await self._large.run(
                    decode_request_on_thread, route.schema, header.api_version, frame, header.body_at
                )
                context.pace.ensure_wanted()
            del frame  # the answer may take long, for example of a JoinGroup
            body = await route.handle(request, context)
            if is_logged():
                log_refusals(route.schema.name, context.client_id, context.client_host, body)
            message = (route.schema, header.api_version, header.correlation_id, body)
            if count_up_to(LARGE_ELEMENTS, (body,)) < LARGE_ELEMENTS:
                response = encode_response(*message)
            else:
                response = await self._large.run(encode_response, *message)
            exchange.answer(response)
        except Exception as error:
            self._give_up(exchange, error)

    async def close(self) -> None:
        """End the requests under way: wait a moment, then cancel them. All connections are closed by now."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_REQUESTS_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _give_up(self, exchange: Exchange, error: Exception) -> None:
        """Handle a request that gets no answer."""
        match error:
            case ClientGone():
                exchange.answer(None)
            case MalformedMessage():
                self._refuse(exchange, error)
            case _:
                self._fail(exchange, error)

    def _refuse(self, exchange: Exchange, error: FaircopyError) -> None:
        """The client violates the protocol: close its connection, as Kafka does."""
        exchange.connection.complain(error)
        self._drop(exchange)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """A bug of ours, or the disk failed: log everything, and let the client reconnect."""
        log.error("a request of %s failed", exchange.connection.peer, exc_info=error)
        self._drop(exchange)

    def _drop(self, exchange: Exchange) -> None:
        if not exchange.is_answered:
            exchange.answer(None)
        exchange.connection.close()


def unknown(header: RequestHeader) -> UnknownApi:
    """The error for a request that was never advertised."""
    return UnknownApi(f"API {header.api_key} version {header.api_version} is not one that was advertised")


def refuse(route: HotRoute, exchange: Exchange, header: RequestHeader) -> None:
    """Answer a version that is not served, if that API has an answer for it. Raises UnknownApi."""
    if route.refuse is None:
        raise unknown(header)
    route.refuse(exchange, header)


def count_up_to(most: int, bodies: Sequence[Any]) -> int:
    """The number of elements in all lists of these bodies, by the fields of the first; stops at `most`."""
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
