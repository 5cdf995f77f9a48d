"""Who may go on: the limits over all connections of a broker. No I/O and no clock.

Connections are bounded in all and by address. Requests that are worked on may take
`requests.in.flight.max.bytes` in all, and so may frames that are being received; a connection that finds no
room waits until others are done. A sweep names the clients that do not finish what they began to send, so
that nobody waits for them for ever.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, NamedTuple, Protocol, TypeVar

from faircopy.errors import FaircopyError
from faircopy.net.frames import Frames
from faircopy.settings.table import Settings


class Rate(NamedTuple):
    """How fast a client must send: it has the grace, plus the time that what has come takes at this rate."""

    grace_ms: int
    bytes_per_second: int


USUAL_RATE = Rate(60_000, 16 << 10)
# While others wait for the memory that frames hold:
CROWDED_RATE = Rate(5_000, 64 << 10)
CROWDED_AGE_MS = 30_000


class Sender(Protocol):
    """A connection, as far as it is judged here. It is hashable by its identity."""

    @property
    def frames(self) -> Frames:
        """What it has received and not yet handled."""

    @property
    def is_idle(self) -> bool:
        """Whether none of its requests is worked on."""


Connected = TypeVar("Connected", bound=Sender)


class TooSlow(FaircopyError):
    """A client does not finish what it began to send."""


class Closing(NamedTuple, Generic[Connected]):
    """A connection to close: at once if its client is at fault, else once what was written is sent."""

    connection: Connected
    fault: TooSlow | None


class Admission(Generic[Connected]):
    """What the connections of a broker take, and whether one may take more.

    `in_flight_bytes` are those of requests that are worked on, `receiving_bytes` those that have arrived of
    frames that have buffers of their own. `waiting` are connections that want to be asked again when there is
    room.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._addresses: dict[Connected, str] = {}  # in the order in which they were opened
        self._by_address: Counter[str] = Counter()
        self._received: dict[Connected, int] = {}
        self._favoured: Connected | None = None
        self.waiting: dict[Connected, None] = {}  # in the order in which they came
        self.in_flight_bytes = 0
        self.receiving_bytes = 0

    # -- connections -----------------------------------------------------------------------------------------

    @property
    def connections(self) -> list[Connected]:
        """Those that are open, the oldest first."""
        return list(self._addresses)

    def limit_reached(self, address: str) -> str:
        """The setting that allows no further connection from there; empty if none does."""
        if len(self._addresses) >= self._settings.connections_max:
            return "connections.max"
        is_full = self._by_address[address] >= self._settings.max_connections_per_ip
        return "max.connections.per.ip" if is_full else ""

    def open(self, connection: Connected, address: str) -> None:
        """A client has come; `limit_reached` was asked before."""
        self._addresses[connection] = address
        self._by_address[address] += 1

    def close(self, connection: Connected) -> None:
        """A client has gone. Its requests still count until they are answered."""
        self.frame_is_over(connection)
        self.waiting.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    # -- requests that are worked on -------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether another request may be worked on."""
        return self.in_flight_bytes < self._settings.requests_in_flight_max_bytes

    def begin(self, request_bytes: int) -> None:
        """A request is worked on."""
        self.in_flight_bytes += request_bytes

    def end(self, request_bytes: int) -> None:
        """A request is answered."""
        self.in_flight_bytes -= request_bytes

    def wait(self, connection: Connected) -> None:
        """Note that this one waits for room."""
        self.waiting[connection] = None

    def take_waiting(self) -> list[Connected]:
        """Those that wait for room, who are to look again; who still finds none waits anew."""
        waiting, self.waiting = list(self.waiting), {}
        return waiting

    # -- frames that are being received ----------------------------------------------------------------------

    @property
    def is_crowded(self) -> bool:
        """Whether frames that are being received hold all the memory that they may."""
        return self.receiving_bytes >= self._settings.requests_in_flight_max_bytes

    def receive(self, connection: Connected, received_bytes: int) -> None:
        """So many bytes in all have arrived of the frame that this one is sending."""
        self.receiving_bytes += received_bytes - self._received.get(connection, 0)
        self._received[connection] = received_bytes

    def frame_is_over(self, connection: Connected) -> None:
        """A frame was received, or given up."""
        self.receiving_bytes -= self._received.pop(connection, 0)
        if self._favoured is connection:
            self._favoured = None

    def may_grow(self, connection: Connected) -> bool:
        """Whether a frame that has filled its buffer may have a larger one.

        When frames hold all there is to have, one of them still may, so that not all wait for one another. If
        it is slow it loses its connection with the next sweep, and another one may.
        """
        if not self.is_crowded:
            return True
        if self._favoured is None:
            self._favoured = connection
        return self._favoured is connection

    # -- who has to go ---------------------------------------------------------------------------------------

    def sweep(self, now_ms: float) -> list[Closing[Connected]]:
        """The connections that idle, or do not finish what they began to send; each is named once."""
        others_wait = self.is_crowded and bool(self.waiting)
        rate = CROWDED_RATE if others_wait else USUAL_RATE
        judged = (self._judge(connection, now_ms, rate) for connection in self._addresses)
        found = [closing for closing in judged if closing is not None]
        return found + self._make_room(now_ms, found) if others_wait else found

    def _judge(self, connection: Connected, now_ms: float, rate: Rate) -> Closing[Connected] | None:
        frames = connection.frames
        if connection.is_idle and now_ms - frames.arrived_ms > self._settings.connections_idle_ms:
            return Closing(connection, None)
        if frames.is_slow_to_send(now_ms, *rate):
            fault = TooSlow(f"its request comes at less than {rate.bytes_per_second} bytes a second")
            return Closing(connection, fault)
        return None

    def _make_room(self, now_ms: float, going: list[Closing[Connected]]) -> list[Closing[Connected]]:
        """Give up the oldest frames until half of the memory is free, whyever they were not finished.

        They may wait for the broker themselves; but those that fill its memory on purpose can't be told from
        others.
        """
        gone = {closing.connection for closing in going}
        freed_bytes = sum(self._received.get(connection, 0) for connection in gone)
        excess_bytes = self.receiving_bytes - freed_bytes - self._settings.requests_in_flight_max_bytes // 2
        found = []
        for connection in self._oldest(now_ms, gone):
            if excess_bytes <= 0:
                break
            excess_bytes -= self._received[connection]
            fault = TooSlow("its request has held memory for too long that others wait for")
            found.append(Closing(connection, fault))
        return found

    def _oldest(self, now_ms: float, gone: set[Connected]) -> list[Connected]:
        """Connections whose frames are too old, the oldest first, without the favoured one and those gone."""
        old = [
            connection
            for connection in self._addresses
            if connection in self._received
            and connection not in gone
            and connection is not self._favoured
            and now_ms - connection.frames.began_ms > CROWDED_AGE_MS
        ]
        return sorted(old, key=lambda connection: connection.frames.began_ms)
