"""A route: one API of the Kafka protocol, with its messages, the versions served, and its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from faircopy.errors import FaircopyError
from faircopy.loop.pace import Pace
from faircopy.net.exchange import Exchange
from faircopy.serving.parts import Parts
from faircopy.transactions.connections import Sent
from faircopy.wire.address import Address
from faircopy.wire.codec import Message
from faircopy.wire.messages import RequestHeader
from faircopy.wire.schema import Schema

__all__ = ["Body", "Context", "HotRoute", "Message", "Route", "UnknownApi"]

Body = dict[str, Any]


class UnknownApi(FaircopyError):
    """A request for an API or a version that was not advertised.

    As in Kafka, its connection is closed: there is no answer that the client is sure to understand.
    """


class Context(NamedTuple):
    """What a handler knows besides the request.

    `connection` numbers connections in the order in which they came. `correlation_id` is the client's number
    of the request, which grows on each of its connections. `advertised` is the address at which this client
    is told to find the broker. Handlers iterate over the lists of a request at its `pace`.
    `when_gone(function)` calls the function if the client disconnects before it has its answer.
    """

    parts: Parts
    version: int
    client_id: str
    client_host: str
    connection: int
    correlation_id: int
    advertised: Address
    pace: Pace
    when_gone: Callable[[Callable[[], None]], None] = lambda _function: None

    @property
    def node(self) -> Body:
        """This broker, with the address at which the client can reach it."""
        host, port = self.advertised
        return {"node_id": self.parts.settings.node_id, "host": host, "port": port}

    def sent(self, content: Hashable) -> Sent:
        """The origin of the request. `content` distinguishes it from others of its kind."""
        return Sent(self.connection, self.correlation_id, content)


Handler = Callable[[Message, Context], Awaitable[Body]]
HotHandler = Callable[[Exchange, RequestHeader, memoryview], Awaitable[None] | None]
"""Answers the exchange by itself. Returns the rest of the work if the request is a long one."""
Refuse = Callable[[Exchange, RequestHeader], None]


@dataclass(frozen=True)
class Route:
    """An API whose requests are decoded, handled by a coroutine, and encoded.

    `newest` is the newest advertised version, if the schema has newer ones.
    """

    schema: Schema
    handle: Handler
    newest: int | None = None
    is_advertised: bool = True

    @property
    def versions(self) -> range:
        """The versions that are served."""
        last = self.schema.versions.last if self.newest is None else self.newest
        return range(self.schema.versions.first, last + 1)


@dataclass(frozen=True)
class HotRoute:
    """An API with a codec of its own, whose handler answers by callbacks.

    `make` creates the handler of one broker. `refuse` answers versions that are not served. Without it, their
    connection is closed, since there is no answer that the client is sure to understand.
    """

    schema: Schema
    make: Callable[[Parts], HotHandler]
    versions: range
    refuse: Refuse | None = None
