"""From a frame to its handler, past the faults that were asked for."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, NoReturn

from faircopy.errors import FaircopyError
from faircopy.faults.asked import transactional_id_of
from faircopy.faults.exchange import InterceptedExchange
from faircopy.faults.fault import Effect, Fault
from faircopy.faults.parts import FaultyParts
from faircopy.faults.producers import expire, fence
from faircopy.faults.refusal import refused
from faircopy.net.exchange import Exchange
from faircopy.serving.dispatch import Dispatcher
from faircopy.serving.route import HotRoute, Route
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.messages import RequestHeader, encode_response, read_request_header

FLUSH_SECONDS = 0.001
UNHARMED_CLIENT = "faircopy-testing"
"""The client id of whoever asks for faults: its requests are not counted, and no fault happens to them."""


class Struck(NamedTuple):
    """A request to which a fault happens."""

    fault: Fault
    request: Message
    header: RequestHeader
    exchange: Exchange
    frame: memoryview


def kill() -> NoReturn:
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("this process was killed")


class FaultyDispatcher(Dispatcher):
    """A dispatcher in whose requests the faults of a plan happen."""

    def __init__(
        self, routes: Mapping[int, Route | HotRoute], flexible_from: Mapping[int, int], parts: FaultyParts
    ) -> None:
        super().__init__(routes, flexible_from, parts)
        self._faulty = parts
        self._plan = parts.fault_plan
        self._effects: dict[Effect, Callable[[Struck], None]] = {
            Effect.REFUSE: self._refuse_with_error,
            Effect.DELAY: self._delay,
            Effect.DELAY_ACK: self._delay_ack,
            Effect.DROP: lambda struck: drop(struck.exchange),
            Effect.DROP_ACK: self._instead_of_ack(lambda answered: drop(answered.real)),
            Effect.WITHHOLD: lambda struck: withhold(struck.exchange),
            Effect.WITHHOLD_ACK: self._instead_of_ack(lambda answered: withhold(answered.real)),
            Effect.KILL: lambda struck: kill(),
            Effect.KILL_BEFORE_ACK: self._instead_of_ack(lambda answered: kill()),
            Effect.KILL_AFTER_ACK: self._instead_of_ack(self._kill_after_ack),
            Effect.FENCE: self._fence,
            Effect.EXPIRE: self._expire,
        }

    def handle(self, exchange: Exchange, frame: memoryview) -> None:
        struck = self._struck(exchange, frame)
        if struck is None:
            super().handle(exchange, frame)
        else:
            self._effects[struck.fault.effect](struck)

    def _struck(self, exchange: Exchange, frame: memoryview) -> Struck | None:
        """The request, if a fault happens to it. One that can't be read is left to its handler."""
        try:
            header = read_request_header(frame, self._flexible_from)
            if header.api_key == ApiKey.FAULTS or header.client_id == UNHARMED_CLIENT:
                return None
            self._plan.requests[header.api_key] += 1
            if not self._plan.has(header.api_key):
                return None
            schema = self._routes[header.api_key].schema
            request, _ = codec.reader(schema, header.api_version, "request")(frame, header.body_at)
        except FaircopyError:
            return None
        fault = self._plan.take(header.api_key, request, self._faulty.topic_name)
        return Struck(fault, request, header, exchange, frame) if fault is not None else None

    # -- before the request is handled -----------------------------------------------------------------------

    def _refuse_with_error(self, struck: Struck) -> None:
        header, exchange = struck.header, struck.exchange
        if header.api_key == ApiKey.PRODUCE and struck.request.acks == 0:
            drop(exchange)  # there is no other way to tell the client
            return
        schema = self._routes[header.api_key].schema
        about = self._about_broker(exchange)
        body = refused(schema, header.api_version, struck.request, struck.fault.error_code, about)
        exchange.answer(encode_response(schema, header.api_version, header.correlation_id, body))

    def _about_broker(self, exchange: Exchange) -> dict[str, Any]:
        """What Metadata tells of the broker itself."""
        host, port = exchange.connection.advertised
        node_id = self._parts.settings.node_id
        broker = {"node_id": node_id, "host": host, "port": port}
        return {"brokers": [broker], "cluster_id": self._parts.cluster_id, "controller_id": node_id}

    def _delay(self, struck: Struck) -> None:
        struck.exchange.blocks_next = True
        self._parts.loop.call_later(struck.fault.delay_ms / 1000, self._handle_now, struck)

    def _handle_now(self, struck: Struck) -> None:
        """Handle a request that was held back, and let those that came after it be handled after it."""
        exchange = struck.exchange
        exchange.blocks_next = False
        super().handle(exchange, struck.frame)
        if not exchange.blocks_next:
            exchange.release_next()

    def _fence(self, struck: Struck) -> None:
        connection = struck.exchange.connection.number
        self._after(fence(self._parts, transactional_id_of(struck.request), connection), struck)

    def _expire(self, struck: Struck) -> None:
        self._after(expire(self._parts, transactional_id_of(struck.request)), struck)

    def _after(self, work: Coroutine[Any, Any, None], struck: Struck) -> None:
        """Do this first, then handle the request."""

        async def both() -> None:
            try:
                await work
            finally:
                self._handle_now(struck)

        struck.exchange.blocks_next = True
        self._start(self._finish(both(), struck.exchange))

    # -- once it has taken effect ----------------------------------------------------------------------------

    def _delay_ack(self, struck: Struck) -> None:
        seconds = struck.fault.delay_ms / 1000
        self._instead_of_ack(lambda answered: self._parts.loop.call_later(seconds, answered.pass_on))(struck)

    def _instead_of_ack(self, function: Callable[[InterceptedExchange], object]) -> Callable[[Struck], None]:
        """An effect that calls this in place of the answer."""

        def handle(struck: Struck) -> None:
            Dispatcher.handle(self, InterceptedExchange(struck.exchange, function), struck.frame)

        return handle

    def _kill_after_ack(self, answered: InterceptedExchange) -> None:
        """Kill the process once the answer has left it."""
        answered.pass_on()
        answered.connection.close()
        self._kill_once_closed(answered)

    def _kill_once_closed(self, answered: InterceptedExchange) -> None:
        if not answered.connection.is_open:
            kill()
        self._parts.loop.call_later(FLUSH_SECONDS, self._kill_once_closed, answered)


def drop(exchange: Exchange) -> None:
    """Close the connection of an exchange, which gets no answer."""
    exchange.connection.close()
    withhold(exchange)


def withhold(exchange: Exchange) -> None:
    """Give no answer, as long as the client is there."""
    nothing = functools.partial(exchange.answer, None)
    if exchange.connection.is_open:
        exchange.when_lost = nothing
    else:
        nothing()
