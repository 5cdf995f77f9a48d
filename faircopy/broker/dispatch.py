"""From a frame to its handler, and from what the handler returns to the response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from faircopy.broker.connection import Exchange
from faircopy.broker.handlers.context import Body, Context
from faircopy.errors import FaircopyError
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.api_versions import api_versions_body, api_versions_too_new_body, is_advertised
from faircopy.wire.codec import MalformedMessage, Message
from faircopy.wire.messages import RequestHeader, decode_request, encode_response, read_request_header

log = logging.getLogger(__name__)

Handler = Callable[[Message, Context], Awaitable[Body]]
HotHandler = Callable[[Exchange, RequestHeader, memoryview], None]


class UnknownApi(FaircopyError):
    """A request for an API or a version that was not advertised."""


class Dispatcher:
    """Gives each request to the handler of its API. The hot ones answer by themselves."""

    def __init__(
        self,
        hot: Mapping[ApiKey, HotHandler],
        handlers: Mapping[ApiKey, Handler],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._hot = {int(key): handler for key, handler in hot.items()}
        self._handlers = {int(key): handler for key, handler in handlers.items()}
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, exchange: Exchange, frame: memoryview) -> None:
        """Take one request."""
        try:
            header = read_request_header(frame)
            hot = self._hot.get(header.api_key)
            if hot is not None and is_advertised(header.api_key, header.api_version):
                hot(exchange, header, frame)
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
            header.api_key == ApiKey.INSPECT or is_advertised(header.api_key, header.api_version)
        ):
            raise UnknownApi(f"API {header.api_key} version {header.api_version} is not one that was advertised")
        request = decode_request(header.api_key, header.api_version, frame, header.body_at)
        connection = exchange.connection
        context = Context(header.api_version, header.client_id or "", connection.peer, connection.number)
        task = self._loop.create_task(self._run(handler, request, context, exchange, header))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(
        self, handler: Handler, request: Message, context: Context, exchange: Exchange, header: RequestHeader
    ) -> None:
        try:
            body = await handler(request, context)
            exchange.answer(encode_response(header.api_key, header.api_version, header.correlation_id, body))
        except MalformedMessage as error:
            self._refuse(exchange, error)
        except Exception as error:
            self._fail(exchange, error)

    def _api_versions(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        if is_advertised(header.api_key, header.api_version):
            decode_request(header.api_key, header.api_version, frame, header.body_at)
            body, version = api_versions_body(), header.api_version
        else:
            body, version = api_versions_too_new_body(), 0
        exchange.answer(encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, body))

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
