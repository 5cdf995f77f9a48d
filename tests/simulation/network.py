"""Connections between simulated clients and a broker's real `Connection` objects, over links that delay and
cut.

A link keeps its bytes in order, as TCP does. When it is cut, the client knows at once and the broker later.
Bytes on their way may still arrive, so a request may be carried out after its client has reconnected and
retried.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from faircopy.api.routes import schema_of
from faircopy.net.listeners import Listener
from faircopy.net.server import Server
from faircopy.storage.system import Buffer
from faircopy.wire.address import Address
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.messages import decode_response, encode_request
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop

DELAY_SECONDS = 0.001
SLOW_SECONDS = 0.5
LATE_SECONDS = 3.0
TROUBLE = CUT_BEFORE, CUT_AFTER, LATE, REPEATED, TIMED_OUT, FLIPPED = (
    "network: cut before a request arrived",
    "network: cut before a response arrived",
    "network: a request came after the connection that replaced its own",
    "network: a request repeated",
    "network: a request timed out",
    "network: a flipped bit",
)
REPEATABLE = (ApiKey.END_TXN, ApiKey.JOIN_TRANSACTION, ApiKey.END_JOINT_TRANSACTION)
LISTENER = Listener("default", Address("10.0.0.2", 9092), None)


class Disconnected(Exception):
    """The connection is gone, or none could be made: whether the request had an effect is unknown."""


class Weather:
    """The probability of each network fault, per request. At first there are no faults."""

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen
        self.clear()

    def worsen(self) -> None:
        """Start the faults."""
        self.slow = self._chosen.choice([0.0, 0.01, 0.05])
        self.cut_before = self._chosen.choice([0.0, 0.002, 0.01])
        self.cut_after = self._chosen.choice([0.0, 0.002, 0.01])
        self.late_request = self._chosen.choice([0.0, 0.002, 0.01])
        self.repeat = self._chosen.choice([0.0, 0.01])
        self.flipped_bit = self._chosen.choice([0.0, 0.02])

    def clear(self) -> None:
        """Stop the faults."""
        self.slow = self.cut_before = self.cut_after = self.late_request = self.repeat = self.flipped_bit = (
            0.0
        )

    def happens(self, chance: float) -> bool:
        return chance > 0 and self._chosen.random() < chance

    def delay(self) -> float:
        if self.happens(self.slow):
            return self._chosen.random() * SLOW_SECONDS
        return self._chosen.random() * DELAY_SECONDS

    def late(self) -> float:
        """How long after a cut the broker gets what was on its way."""
        return self._chosen.random() * LATE_SECONDS


class Lane:
    """One direction of a link. What is sent later arrives later."""

    def __init__(
        self, loop: VirtualLoop, life: Life, weather: Weather, arrive: Callable[[bytes], None]
    ) -> None:
        self._loop = loop
        self._life = life
        self._weather = weather
        self._arrive = arrive
        self._last = 0.0

    def send(self, data: bytes, after: float | None = None) -> None:
        arrival = self._loop.now + (self._weather.delay() if after is None else after)
        self._last = max(self._last, arrival)
        self._loop.call_at(self._last, self._arrive, data, context=self._life.context)

    def end(self, over: Callable[[], None]) -> None:
        """Call `over` when all that was sent has arrived."""
        self._loop.call_at(self._last, over, context=self._life.context)


class Transport(asyncio.Transport):
    """The transport that the broker's side of a link writes to."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self._is_closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 1) if name == "peername" else default

    def write(self, data: Buffer) -> None:
        self._link.note_answer()
        self._link.to_client.send(bytes(data))

    def writelines(self, buffers: Sequence[Buffer]) -> None:  # type: ignore[override]  # it takes any buffers
        self.write(b"".join(buffers))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._link.broker_hung_up()

    abort = close


class Link:
    """One connection, with both of its ends."""

    def __init__(
        self,
        loop: VirtualLoop,
        weather: Weather,
        client: Life,
        broker: Life,
        server: Server,
        note_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """`note_answer` is called whenever an answer leaves the broker."""
        self.note_answer = note_answer
        self._answered = 0
        self._loop = loop
        self._broker = broker
        self._weather = weather
        self.to_broker = Lane(loop, broker, weather, self._reach_broker)
        self.to_client = Lane(loop, client, weather, self._reach_client)
        self._connection = server.accept(LISTENER)
        self._transport = Transport(self)
        self._unread = b""
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self.is_open = True
        loop.call_soon(self._connection.connection_made, self._transport, context=broker.context)

    # -- the broker's end ------------------------------------------------------------------------------------

    def _reach_broker(self, data: bytes) -> None:
        left = memoryview(data)
        while left and not self._transport.is_closing():
            buffer = self._connection.get_buffer(-1)
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            left = left[count:]
            self._connection.buffer_updated(count)

    def _leave_broker(self) -> None:
        if not self._transport.is_closing():
            self._transport._is_closing = True
            self._connection.connection_lost(None)

    def broker_hung_up(self) -> None:
        """The broker closed the connection."""
        self._loop.call_soon(self._connection.connection_lost, None)
        self.to_client.end(self._lose)

    # -- the client's end ------------------------------------------------------------------------------------

    def expect(self, correlation_id: int) -> asyncio.Future[bytes]:
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[correlation_id] = future
        return future

    def _reach_client(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._unread += data
        while len(self._unread) >= 4 and len(self._unread) >= 4 + int.from_bytes(self._unread[:4], "big"):
            end = 4 + int.from_bytes(self._unread[:4], "big")
            frame, self._unread = self._unread[4:end], self._unread[end:]
            number = int.from_bytes(frame[:4], "big")
            assert number >= self._answered, "answers come in the order of their requests"
            self._answered = number
            future = self._waiting.pop(number, None)
            if future is not None and not future.done():
                future.set_result(frame)

    def _lose(self) -> None:
        """The client sees that the connection is gone."""
        self.is_open = False
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Disconnected("the connection broke"))
        self._waiting.clear()

    def cut(self) -> None:
        """Break the link. What is on its way to the broker may still arrive, even very late."""
        self.to_broker.send(b"", self._weather.late())
        self.to_broker.end(self._leave_broker)
        self._lose()


class Remote:
    """A client's access to the broker: one connection at a time, replaced when it is gone.

    `connect` makes a connection. It raises Disconnected if nobody listens.
    """

    def __init__(
        self, connect: Callable[[], Link], weather: Weather, chosen: random.Random, coverage: Coverage
    ) -> None:
        self._connect = connect
        self._weather = weather
        self._chosen = chosen
        self._coverage = coverage
        coverage.announce(*TROUBLE)
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._correlation_id = 0

    async def ask(self, api_key: ApiKey, version: int, body: dict[str, Any], timeout: float = 5.0) -> Message:
        """Send a request, and return the body of its response. Raises Disconnected."""
        link = await self._connected()
        self._correlation_id += 1
        request = encode_request(schema_of(api_key), version, self._correlation_id, "simulated", body)
        weather = self._weather
        answer = link.expect(self._correlation_id)
        if weather.happens(weather.cut_before):
            self._coverage.hit(CUT_BEFORE)
            # The start of the request may arrive.
            link.to_broker.send(request[: self._chosen.randint(0, len(request) - 1)])
            link.cut()
        elif weather.happens(weather.late_request):
            self._coverage.hit(LATE)
            link.to_broker.send(request, weather.late())
            link.cut()
        else:
            link.to_broker.send(request)
        if link.is_open and api_key in REPEATABLE and weather.happens(weather.repeat):
            self._coverage.hit(REPEATED)
            link.to_broker.send(request)
        if link.is_open and weather.happens(weather.cut_after):
            self._coverage.hit(CUT_AFTER)
            link.cut()
        try:
            async with asyncio.timeout(timeout):
                frame = await answer
        except TimeoutError:
            self._coverage.hit(TIMED_OUT)
            link.cut()
            raise Disconnected("no response came in time") from None
        return decode_response(schema_of(api_key), version, memoryview(frame))[1]

    async def _connected(self) -> Link:
        # Requests of one moment keep their order. No `with`: see `SimulatedProducer._try`.
        await self._connecting.acquire()
        if self._link is None or not self._link.is_open:
            await asyncio.sleep(self._weather.delay())
            try:
                self._link = self._connect()
            except Disconnected:
                self._connecting.release()
                raise
        self._connecting.release()
        return self._link

    def spoilt(self, records: bytes) -> bytes:
        """A record batch as it arrives: now and then with a flipped bit, which its CRC reveals."""
        if not self._weather.happens(self._weather.flipped_bit):
            return records
        self._coverage.hit(FLIPPED)
        changed = bytearray(records)
        changed[-1] ^= 1 << self._chosen.randrange(8)
        return bytes(changed)

    def leave(self) -> None:
        """Drop the connection, like a client that is gone. What it sent may still arrive."""
        if self._link is not None and self._link.is_open:
            self._link.cut()
