"""What a handler gets to know besides the request."""

from __future__ import annotations

from typing import Any, NamedTuple

from faircopy.wire.codec import Message

Body = dict[str, Any]

LEADER_EPOCH = 0  # replication, and with it changes of leader, is not there yet


class Context(NamedTuple):
    """One request's surroundings. `connection` numbers connections in the order in which they came."""

    version: int
    client_id: str
    client_host: str
    connection: int


class BrokerAddress(NamedTuple):
    """Where clients find a broker."""

    node_id: int
    host: str
    port: int


MESSAGE_CHARS_MAX = 1_000


def message_of(error: Exception) -> str:
    """What a response says of an error: short, whatever a client has put into the names in it."""
    return str(error)[:MESSAGE_CHARS_MAX]


__all__ = ["LEADER_EPOCH", "Body", "BrokerAddress", "Context", "Message", "message_of"]
