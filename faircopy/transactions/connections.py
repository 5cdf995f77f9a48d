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
has sent any other Produce (librdkafka has such connections). The batch that has its sequence then tells that
one of the two came late (copier/producers.py).

A connection that is over can deliver nothing late, so nothing is kept of it. Once all connections of a
producer are over, nothing is kept of the producer either: many clients take an id for each transaction. There
may still be an older connection that it has replaced. So of all producers together one number is kept, that
of their newest connection. Should a producer come back of which nothing is kept, all older connections count
as replaced. A live one is asked once to send its request again, which is harmless.

Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from enum import IntEnum, auto
from typing import NamedTuple

from faircopy.errors import FaircopyError

CONNECTIONS_MAX = 16
"""How many connections of one producer are remembered. A producer uses two or three, a pool a few more."""
PRODUCERS_MAX = 256
"""How many producers of one connection are remembered: far more than a client has at work at a time. Flink
goes from one transactional id to the next on the same connection.
"""

ProducerIdAndEpoch = tuple[int, int]


class RequestKind(IntEnum):
    """Requests that a client sends over one connection."""

    PRODUCE = 0
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


NO_CONNECTION = -1
NO_REFUSALS = Refusals(0, Sent(NO_CONNECTION, -(1 << 31) - 1, object()))
NEVER_CARRIED = (NO_CONNECTION,) * len(RequestKind)
NONE_REPLACED = frozenset[int]()


class LateRequest(FaircopyError):
    """A request came on a connection that its producer replaced. It had no effect. A live client retries."""


class Connections:
    """The connections of one producer's instance. They replace what is older than `floor`, for all kinds.

    `carried` has for each connection that is remembered the kinds that came over it, as bits; `_newest` has
    for each kind its newest connection. There are many of these objects, so they are small.
    """

    __slots__ = ("_newest", "_refused", "_replaced", "carried")

    def __init__(self, floor: int = NO_CONNECTION) -> None:
        self.carried: dict[int, int] = {}
        self._newest = NEVER_CARRIED if floor == NO_CONNECTION else (floor,) * len(NEVER_CARRIED)
        self._replaced: frozenset[int] = NONE_REPLACED
        self._refused: dict[int, dict[RequestKind, Refusals]] = {}

    @property
    def newest(self) -> int:
        """The newest connection that has carried something, or NO_CONNECTION."""
        return max(self._newest)

    def note(self, connection: int) -> None:
        """Remember a connection that has carried nothing of these kinds so far."""
        self.carried.setdefault(connection, 0)

    def admit(self, kind: RequestKind, sent: Sent) -> None:
        """Admit a request. Raises LateRequest."""
        connection = sent.connection
        if not self.carried.get(connection, 0) & (1 << kind):
            self._note(kind, connection)
        if connection in self._replaced:
            self._ensure_live(kind, sent)

    def _note(self, kind: RequestKind, connection: int) -> None:
        """Note that a connection carries a kind of request for the first time."""
        if connection < self._newest[kind]:
            self._replaced |= {connection}
        else:
            self._newest = (*self._newest[:kind], connection, *self._newest[kind + 1 :])
            self._replaced |= {older for older, kinds in self.carried.items() if kinds & (1 << kind)}
        if connection not in self.carried and len(self.carried) >= CONNECTIONS_MAX:
            # Newer ones carry what it carried.
            self.forget(min(self._replaced & self.carried.keys(), default=min(self.carried)))
        self.carried[connection] = self.carried.get(connection, 0) | (1 << kind)

    def forget(self, connection: int) -> None:
        """Forget a connection. It stays older, or newer, than others."""
        self.carried.pop(connection, None)
        self._replaced -= {connection}
        self._refused.pop(connection, None)

    def _ensure_live(self, kind: RequestKind, sent: Sent) -> None:
        refused = self._refused.setdefault(sent.connection, {})
        refusals = refused.get(kind, NO_REFUSALS)
        if sent.correlation_id > refusals.last.correlation_id:  # otherwise the network has repeated it
            if sent.content == refusals.last.content or refusals.number == IN_FLIGHT_MAX[kind]:
                self._replaced -= {sent.connection}
                del self._refused[sent.connection]
                return
            refused[kind] = Refusals(refusals.number + 1, sent)
        raise LateRequest(
            "this request came on a connection that its producer has replaced with a newer one: a producer "
            "that still uses both should send it again"
        )


class ProducerConnections:
    """The connections of all producers with a transactional id. Ask only for those that exist.

    `_producers` has for each connection the producers that know it, the latest last. `_floor` is the newest
    connection of all producers of which nothing is kept.
    """

    def __init__(self) -> None:
        self._connections: dict[ProducerIdAndEpoch, Connections] = {}
        self._producers: dict[int, dict[ProducerIdAndEpoch, None]] = {}
        self._floor = NO_CONNECTION

    @property
    def known(self) -> Set[int]:
        """The connections of which something is kept."""
        return self._producers.keys()

    def begin(self, producer: ProducerIdAndEpoch, connection: int) -> None:
        """There is a new instance, and `connection` asked for it: nothing of it can be late."""
        self.forget(producer)
        connections = self._connections[producer] = Connections()
        connections.note(connection)
        self._link(producer, connection)

    def admit(self, producer: ProducerIdAndEpoch, kind: RequestKind, sent: Sent) -> None:
        """Admit a request of a producer. Raises LateRequest."""
        connections = self._connections.get(producer)
        if connections is None:
            connections = self._connections[producer] = Connections(self._floor)
        if sent.connection in connections.carried:
            connections.admit(kind, sent)
            return
        before = set(connections.carried)
        try:
            connections.admit(kind, sent)
        finally:
            for forgotten in before - connections.carried.keys():
                self._unlink(producer, forgotten)
            self._link(producer, sent.connection)

    def over(self, connection: int) -> None:
        """Forget a connection: it is closed, and none of its requests is still to be admitted."""
        for producer in self._producers.pop(connection, ()):
            connections = self._connections[producer]
            connections.forget(connection)
            if not connections.carried:
                self._floor = max(self._floor, connections.newest)
                del self._connections[producer]

    def forget(self, producer: ProducerIdAndEpoch) -> None:
        """Forget the connections of an instance that is fenced, or forgotten."""
        connections = self._connections.pop(producer, None)
        if connections is not None:
            for connection in connections.carried:
                self._unlink(producer, connection)

    def _link(self, producer: ProducerIdAndEpoch, connection: int) -> None:
        """Note that a producer knows a connection. If too many do, the one that came first is dropped."""
        producers = self._producers.setdefault(connection, {})
        producers[producer] = None
        if len(producers) > PRODUCERS_MAX:
            first = next(iter(producers))
            self._floor = max(self._floor, self._connections[first].newest)
            self.forget(first)

    def _unlink(self, producer: ProducerIdAndEpoch, connection: int) -> None:
        producers = self._producers[connection]
        del producers[producer]
        if not producers:
            del self._producers[connection]
