"""Which connections may proceed: the limits over all connections of a broker. No I/O and no clock.

The number of connections is limited in total and for each address. Requests in progress may take
`requests.in.flight.max.bytes` in total, and so may frames that are being received; a connection that finds no
room waits until others are done. A sweep names the clients that do not finish a frame, so that nobody waits
for them for ever.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, NamedTuple, Protocol, TypeVar

from faircopy.errors import FaircopyError
from faircopy.net.frames import Frames
from faircopy.settings.table import Settings


class Rate(NamedTuple):
    """How fast a client must send: the grace, plus the time that the received bytes take at this rate."""

    grace_ms: int
    bytes_per_second: int


USUAL_RATE = Rate(60_000, 16 << 10)
# While others wait for memory that is held by frames:
CROWDED_RATE = Rate(5_000, 64 << 10)
CROWDED_AGE_MS = 30_000
FAVOURED_GRACE_MS = 1_000


class Sender(Protocol):
    """The parts of a connection that this module looks at. Hashable by identity."""

    @property
    def frames(self) -> Frames:
        """The bytes that it has received and not yet handled."""

    @property
    def is_idle(self) -> bool:
        """Whether none of its requests is in progress."""


Connected = TypeVar("Connected", bound=Sender)


class TooSlow(FaircopyError):
    """A client does not finish a frame in time."""


class Closing(NamedTuple, Generic[Connected]):
    """A connection to close: at once if its client is at fault, otherwise after sending what was written."""

    connection: Connected
    fault: TooSlow | None


class Favoured(NamedTuple, Generic[Connected]):
    """The one frame that may grow though frames hold all the memory, and how much of it had arrived at a
    time.
    """

    connection: Connected
    at_ms: float
    received_bytes: int


class Admission(Generic[Connected]):
    """The memory that the connections of a broker use, and whether one of them may use more.

    `in_flight_bytes` counts requests in progress. `receiving_bytes` counts the received bytes of frames that
    have buffers of their own. `waiting` holds connections that want to be asked again when there is room.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._addresses: dict[Connected, str] = {}  # in the order of their opening
        self._by_address: Counter[str] = Counter()
        self._received: dict[Connected, int] = {}
        self._favoured: Favoured[Connected] | None = None
        self.waiting: dict[Connected, None] = {}  # in the order of their arrival
        self.in_flight_bytes = 0
        self.receiving_bytes = 0

    # -- connections -----------------------------------------------------------------------------------------

    @property
    def connections(self) -> list[Connected]:
        """The open connections, the oldest first."""
        return list(self._addresses)

    def limit_reached(self, address: str) -> str:
        """The setting that forbids another connection from this address; empty if none does."""
        if len(self._addresses) >= self._settings.connections_max:
            return "connections.max"
        is_full = self._by_address[address] >= self._settings.max_connections_per_ip
        return "max.connections.per.ip" if is_full else ""

    def open(self, connection: Connected, address: str) -> None:
        """A client has connected; the caller has asked `limit_reached` before."""
        self._addresses[connection] = address
        self._by_address[address] += 1

    def close(self, connection: Connected) -> None:
        """A client has disconnected. Its requests still count until they are answered."""
        self.frame_is_over(connection)
        self.waiting.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    # -- requests in progress --------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether another request may be started."""
        return self.in_flight_bytes < self._settings.requests_in_flight_max_bytes

    def begin(self, request_bytes: int) -> None:
        """A request is started."""
        self.in_flight_bytes += request_bytes

    def end(self, request_bytes: int) -> None:
        """A request is answered."""
        self.in_flight_bytes -= request_bytes

    def wait(self, connection: Connected) -> None:
        """Note that this connection waits for room."""
        self.waiting[connection] = None

    def take_waiting(self) -> list[Connected]:
        """The connections that wait for room and should try again; if there is no room, they wait again."""
        waiting, self.waiting = list(self.waiting), {}
        return waiting

    # -- frames that are being received ----------------------------------------------------------------------

    @property
    def is_crowded(self) -> bool:
        """Whether frames that are being received hold all the memory allowed for them."""
        return self.receiving_bytes >= self._settings.requests_in_flight_max_bytes

    def receive(self, connection: Connected, received_bytes: int) -> None:
        """`received_bytes` in total have arrived of the frame that this connection is sending."""
        self.receiving_bytes += received_bytes - self._received.get(connection, 0)
        self._received[connection] = received_bytes

    def frame_is_over(self, connection: Connected) -> None:
        """A frame was received completely, or given up."""
        self.receiving_bytes -= self._received.pop(connection, 0)
        if self._is_favoured(connection):
            self._favoured = None

    def _is_favoured(self, connection: Connected) -> bool:
        return self._favoured is not None and self._favoured.connection is connection

    def may_grow(self, connection: Connected, now_ms: float) -> bool:
        """Whether a frame that has filled its buffer may have a larger one.

        When frames hold all the memory, one of them may still grow, so that they do not all wait for one
        another. If that one does not go on, it loses its connection in the next sweep or the one after, and
        the one that has waited longest may grow.
        """
        if not self.is_crowded:
            return True
        if self._favoured is None:
            self._favoured = Favoured(connection, now_ms, self._received.get(connection, 0))
        return self._is_favoured(connection)

    # -- who has to go ---------------------------------------------------------------------------------------

    def sweep(self, now_ms: float) -> list[Closing[Connected]]:
        """The connections that idle, or do not finish a frame in time; each is named once."""
        others_wait = self.is_crowded and bool(self.waiting)
        rate = CROWDED_RATE if others_wait else USUAL_RATE
        judged = (self._judge(connection, now_ms, rate) for connection in self._addresses)
        found = [closing for closing in judged if closing is not None]
        if not others_wait:
            return found
        found += self._judge_favoured(now_ms, found)
        return found + self._make_room(now_ms, found)

    def _judge(self, connection: Connected, now_ms: float, rate: Rate) -> Closing[Connected] | None:
        frames = connection.frames
        if connection.is_idle and now_ms - frames.arrived_ms > self._settings.connections_idle_ms:
            return Closing(connection, None)
        if frames.is_slow_to_send(now_ms, *rate):
            fault = TooSlow(f"its request arrives at less than {rate.bytes_per_second} bytes a second")
            return Closing(connection, fault)
        return None

    def _judge_favoured(self, now_ms: float, going: list[Closing[Connected]]) -> list[Closing[Connected]]:
        """Give up the favoured frame if it does not go on: others could be done meanwhile. What had arrived
        before, perhaps all at once, does not count.
        """
        if self._favoured is None or any(self._is_favoured(closing.connection) for closing in going):
            return []
        favoured, at_ms, before_bytes = self._favoured
        received_bytes, elapsed_ms = self._received.get(favoured, 0), now_ms - at_ms
        due_bytes = CROWDED_RATE.bytes_per_second * elapsed_ms / 1_000
        if not favoured.frames.is_arriving or received_bytes - before_bytes >= due_bytes:
            self._favoured = Favoured(favoured, now_ms, received_bytes)
            return []
        if elapsed_ms < FAVOURED_GRACE_MS:
            return []
        fault = TooSlow(
            f"others wait for memory, and its request goes on at less than {CROWDED_RATE.bytes_per_second} "
            f"bytes a second"
        )
        return [Closing(favoured, fault)]

    def _make_room(self, now_ms: float, going: list[Closing[Connected]]) -> list[Closing[Connected]]:
        """Give up the oldest frames until half of the memory is free, for whatever reason they are not
        finished.

        They may be waiting for the broker themselves, but clients that fill its memory on purpose can't be
        told from others.
        """
        gone = {closing.connection for closing in going}
        freed_bytes = sum(self._received.get(connection, 0) for connection in gone)
        excess_bytes = self.receiving_bytes - freed_bytes - self._settings.requests_in_flight_max_bytes // 2
        found = []
        for connection in self._oldest(now_ms, gone):
            if excess_bytes <= 0:
                break
            excess_bytes -= self._received[connection]
            fault = TooSlow("its request has held memory that others wait for, for too long")
            found.append(Closing(connection, fault))
        return found

    def _oldest(self, now_ms: float, gone: set[Connected]) -> list[Connected]:
        """Connections whose frames are too old, oldest first; not the favoured one and those in `gone`."""
        old = [
            connection
            for connection in self._addresses
            if connection in self._received
            and connection not in gone
            and not self._is_favoured(connection)
            and now_ms - connection.frames.began_ms > CROWDED_AGE_MS
        ]
        return sorted(old, key=lambda connection: connection.frames.began_ms)
