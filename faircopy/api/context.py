"""What a handler gets to know besides the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from faircopy.loop.pace import Pace
from faircopy.wire.address import Address
from faircopy.wire.codec import Message

Body = dict[str, Any]

LEADER_EPOCH = 0  # replication, and with it changes of leader, is not there yet


class Context(NamedTuple):
    """One request's surroundings.

    `connection` numbers connections in the order in which they came; `correlation_id` is the client's number of the
    request, which grows on each of its connections; `advertised` is where this client is told to find the broker.
    Handlers go over the lists of a request at its `pace`, and `when_gone(function)` has the function called if the
    client goes before it has its answer.
    """

    version: int
    client_id: str
    client_host: str
    connection: int
    correlation_id: int
    advertised: Address
    pace: Pace
    when_gone: Callable[[Callable[[], None]], None] = lambda _function: None


MESSAGE_CHARS_MAX = 1_000


def message_of(error: Exception) -> str:
    """What a response says of an error: short, whatever a client has put into the names in it."""
    return str(error)[:MESSAGE_CHARS_MAX]


__all__ = ["LEADER_EPOCH", "Body", "Context", "Message", "message_of"]
