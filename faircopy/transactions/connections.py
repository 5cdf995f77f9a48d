"""Late requests: those on a connection that their client has replaced (KAFKA-17754).

A client of transactions v1 keeps its epoch from one transaction to the next. When it gives up a connection, a
request that was stuck there may arrive in the middle of its next transaction. An EndTxn would end that
transaction; a Produce or a TxnOffsetCommit would become part of it. Nothing in the request tells which
transaction it was meant for.

So the broker looks at the connections. A producer sends each kind of request over one connection at a time.
When a kind arrives over a newer connection, the older one is *replaced*, for all kinds that it carried. A
request on a replaced connection is refused with an error that asks the client to retry:

* The client that gave the connection up never sees the error. What it left there is never sent again, and is
  little: no client has more than a few requests in flight.
* A client that alternates between several connections (a pool) can go on. A connection counts as live when
  the refused request is sent again (its correlation id has grown), or when more requests have come than can
  have been in flight. It stays live until the client opens yet another connection.

Not covered: a Produce that arrives late on a connection that carried nothing but Produce, before the client
has sent any other Produce. Clients with such connections (librdkafka) renew their epoch when they give up a
Produce.

Pure.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum, auto
from typing import NamedTuple

from faircopy.errors import FaircopyError

CONNECTIONS_MAX = 16
"""How many connections of one producer are remembered. A producer uses two or three, a pool a few more."""

ProducerIdAndEpoch = tuple[int, int]


class RequestKind(IntEnum):
    """Requests that a client sends over one connection."""

    PRODUCE = auto()
    TRANSACTION = auto()  # AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: to the coordinator of transactions
    OFFSETS = auto()  # TxnOffsetCommit: to the coordinator of the group


IN_FLIGHT_MAX = {RequestKind.PRODUCE: 5, RequestKind.TRANSACTION: 2, RequestKind.OFFSETS: 2}
"""How many requests a transactional producer has in flight on one connection (KIP-98: five batches; it asks
its coordinators for one thing at a time, but may end a transaction while a partition is being added).
"""


class Sent(NamedTuple):
    """Where a request came from. `content` is equal for the same request sent again, and for no other."""

    connection: int
    correlation_id: int
    content: Hashable


class Refusals(NamedTuple):
    """The refused requests of one kind on one connection: how many, and the last of them."""

    number: int
    last: Sent


NO_REFUSALS = Refusals(0, Sent(-1, -(1 << 31) - 1, object()))


class LateRequest(FaircopyError):
    """A request came on a connection that its producer replaced. It had no effect. A live client retries."""


class Connections:
    """The connections of one producer's instance."""

    __slots__ = ("_carried", "_newest", "_refused", "_replaced")

    def __init__(self) -> None:
        self._carried: dict[int, set[RequestKind]] = {}
        self._newest: dict[RequestKind, int] = {}
        self._replaced: set[int] = set()
        self._refused: dict[int, dict[RequestKind, Refusals]] = {}

    def admit(self, kind: RequestKind, sent: Sent) -> None:
        """Admit a request. Raises LateRequest."""
        connection = sent.connection
        if kind not in self._carried.get(connection, ()):
            self._note(kind, connection)
        if connection in self._replaced:
            self._ensure_live(kind, sent)

    def _note(self, kind: RequestKind, connection: int) -> None:
        """Note that a connection carries a kind of request for the first time."""
        if connection < self._newest.get(kind, connection):
            self._replaced.add(connection)
        else:
            self._newest[kind] = connection
            self._replaced |= {older for older, kinds in self._carried.items() if kind in kinds}
        if connection not in self._carried and len(self._carried) >= CONNECTIONS_MAX:
            self._forget_one()
        self._carried.setdefault(connection, set()).add(kind)

    def _forget_one(self) -> None:
        """Forget the oldest replaced connection, or else the oldest. Newer ones carry what it carried."""
        oldest = min(self._replaced & self._carried.keys(), default=min(self._carried))
        del self._carried[oldest]
        self._replaced.discard(oldest)
        self._refused.pop(oldest, None)

    def _ensure_live(self, kind: RequestKind, sent: Sent) -> None:
        refused = self._refused.setdefault(sent.connection, {})
        refusals = refused.get(kind, NO_REFUSALS)
        if sent.correlation_id > refusals.last.correlation_id:  # otherwise the network has repeated it
            if sent.content == refusals.last.content or refusals.number == IN_FLIGHT_MAX[kind]:
                self._replaced.discard(sent.connection)
                del self._refused[sent.connection]
                return
            refused[kind] = Refusals(refusals.number + 1, sent)
        raise LateRequest(
            "this request came on a connection that its producer has replaced with a newer one: a producer "
            "that still uses both should send it again"
        )


class ProducerConnections:
    """The connections of all producers with a transactional id. Ask only for those that exist."""

    def __init__(self) -> None:
        self._connections: dict[ProducerIdAndEpoch, Connections] = {}

    def admit(self, producer: ProducerIdAndEpoch, kind: RequestKind, sent: Sent) -> None:
        """Admit a request of a producer. Raises LateRequest."""
        connections = self._connections.get(producer)
        if connections is None:
            connections = self._connections[producer] = Connections()
        connections.admit(kind, sent)

    def forget(self, producer: ProducerIdAndEpoch) -> None:
        """Forget the connections of an instance that is fenced, or forgotten."""
        self._connections.pop(producer, None)
