"""One client's connection: frames in, responses out, in order.

As in Kafka, a connection has one request at a time in the works, but for Produce, of which any number may follow one
another. What comes meanwhile waits, unread where possible. Memory follows the bytes that arrived, never a length that a
client declares.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from faircopy.net.file_sender import FileSender
from faircopy.net.listeners import Listener
from faircopy.storage.file import FileRange
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.frames import BadFrame, frame_bytes

if TYPE_CHECKING:
    from faircopy.net.server import Server

SCRATCH_BYTES = 64 << 10
FIRST_FRAME_BYTES = 64 << 10
TRUSTED_FRAME_BYTES_MAX = 2 << 20
PREFIX_BYTES = 4
PIPELINED_REQUESTS_MAX = 256

Buffer = bytes | bytearray | memoryview
FromFiles = Sequence[Buffer | FileRange]
Response = Buffer | Sequence[Buffer] | FromFiles | None

_PRODUCE = int(ApiKey.PRODUCE).to_bytes(2, "big")


class Exchange:
    """One request and its response. `answer` may be called at any later time; None answers nothing (acks=0).

    Until a Produce request that holds others back lets them on, or is answered, the connection's next one waits: so
    batches are taken in the order in which they came, though some take longer to check.

    `when_lost` is called if the client goes before it has its answer; it may still be answered.
    """

    __slots__ = (
        "connection", "holds_back", "is_answered", "is_from_files", "is_produce", "response", "size", "when_lost",
    )  # fmt: skip

    def __init__(self, connection: Connection, size: int, is_produce: bool) -> None:
        self.connection = connection
        self.size = size
        self.is_produce = is_produce
        self.is_answered = False
        self.is_from_files = False
        self.holds_back = False
        self.response: Response = None
        self.when_lost: Callable[[], None] | None = None

    def answer(self, response: Response) -> None:
        """Send the response, once those before it are sent. Only the first answer counts."""
        if self.is_answered:
            return
        self.response = response
        self.is_answered = True
        self.connection.answered(self)

    def let_on(self) -> None:
        """The connection's next request may be taken."""
        self.holds_back = False
        self.connection.proceed()

    def answer_from_files(self, response: FromFiles) -> None:
        """Send a response of which parts lie in files."""
        self.is_from_files = True
        self.answer(response)


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one connection."""

    # One scratch buffer serves all connections: the event loop fills and hands over one at a time.
    _scratch = memoryview(bytearray(SCRATCH_BYTES))

    def __init__(
        self, server: Server, listener: Listener, number: int, handle: Callable[[Exchange, memoryview], None]
    ) -> None:
        self._server = server
        self._listener = listener
        self._handle = handle
        self.number = number
        self.peer = ""
        self.advertised = listener.address
        self._transport: asyncio.Transport | None = None
        self._pending: deque[Exchange] = deque()
        self._unread = b""
        self._frame: bytearray | None = None
        self._frame_size = 0
        self._filled = 0
        # What the client has shown to send is allocated at once the next time; more must arrive first.
        self._trusted_bytes = FIRST_FRAME_BYTES
        self._is_reading = True
        self._is_write_paused = False
        self._is_parsing = False
        self._waiting_pieces: FromFiles | None = None
        self._sender: FileSender | None = None
        self.active_ms = server.clock.monotonic_ms()
        self.frame_began_ms = self.active_ms
        self._paused_ms = 0.0  # in all, since the frame began
        self._paused_since_ms = 0.0

    # -- the transport's calls -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not `isinstance`: uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else "local"
        self.advertised = self._listener.address_for(transport.get_extra_info("sockname"))
        self._server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._drop_frame()
        self._unread = b""
        self._waiting_pieces = None
        if self._sender is not None:
            self._sender.stop()
        self._server.closed(self)
        for exchange in list(self._pending):
            if exchange.when_lost is not None and not exchange.is_answered:
                exchange.when_lost()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if self._waiting_pieces is not None:
            self._send_waiting()
        self.proceed()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is None:
            return self._scratch
        if self._filled == len(self._frame):
            self._frame = grown(self._frame, self._frame_size)
        return memoryview(self._frame)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        self.active_ms = self._server.clock.monotonic_ms()
        if not self.in_frame:
            self._frame_begins()
        if self._frame is not None:
            self._filled += count
            self._server.receiving_bytes += count
        else:
            received = self._scratch[:count]
            self._unread = b"".join((self._unread, received)) if self._unread else bytes(received)
        self.proceed()

    def is_slow_to_send(self, grace_ms: float, bytes_per_second: int) -> bool:
        """Whether a frame comes more slowly than this, and has done so for longer than the grace.

        What counts is how old the frame is, and not when the last byte came: else a byte a minute would hold memory
        for ever. While the broker does not read, a client is not late.
        """
        is_whole = self._frame is not None and self._filled == self._frame_size
        if not self.in_frame or is_whole or not self._is_reading:
            return False
        age_ms = self._server.clock.monotonic_ms() - self.frame_began_ms - self._paused_ms
        return age_ms > grace_ms + 1_000 * self._filled / bytes_per_second

    @property
    def received_bytes(self) -> int:
        """What has arrived of a frame that is not handled yet."""
        return self._filled

    def _frame_begins(self) -> None:
        self.frame_began_ms = self.active_ms
        self._paused_ms = 0.0

    # -- frames --------------------------------------------------------------------------------------------------

    @property
    def listener(self) -> str:
        """The name of the listener that it came in by."""
        return self._listener.name

    @property
    def is_idle(self) -> bool:
        return not self._pending

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""
        return self._transport is not None

    @property
    def is_sending_files(self) -> bool:
        """Whether a response from files is on its way; what follows has to wait."""
        return self._sender is not None or self._waiting_pieces is not None

    @property
    def in_frame(self) -> bool:
        """Whether a frame has begun to arrive, and has not ended."""
        return bool(self._unread) or self._frame is not None

    def proceed(self) -> None:
        """Handle the frames that are here, as far as the rules allow; read on or not accordingly."""
        if self._is_parsing or self._transport is None:
            return
        self._is_parsing = True
        try:
            while self._next_frame():
                pass
        except BadFrame as error:
            self._server.complain(self, error)
            self.close()
        finally:
            self._is_parsing = False
        self._set_reading(not self._unread or self._frame is not None or len(self._unread) < PREFIX_BYTES)

    def _next_frame(self) -> bool:
        """Handle one frame; false if none is whole or may be handled now."""
        if self._frame is not None:
            if self._filled < self._frame_size or not self._may_handle(self._frame[:2]):
                return False
            frame = memoryview(self._frame)
            self._trusted_bytes = max(self._trusted_bytes, min(self._frame_size, TRUSTED_FRAME_BYTES_MAX))
            self._drop_frame()
            self._frame_begins()
            self._begin(frame[: self._frame_size])
            return True
        if len(self._unread) < PREFIX_BYTES:
            return False
        size = frame_bytes(self._unread[:PREFIX_BYTES], self._server.settings.request_max_bytes)
        end = PREFIX_BYTES + size
        if len(self._unread) < end:
            self._start_frame(size)
            return False
        if not self._may_handle(self._unread[PREFIX_BYTES : PREFIX_BYTES + 2]):
            return False
        frame = memoryview(self._unread)[PREFIX_BYTES:end]
        self._unread = self._unread[end:]
        self._frame_begins()
        self._begin(frame)
        return True

    def _start_frame(self, size: int) -> None:
        """Receive the rest of a frame right where it is to stand."""
        arrived = self._unread[PREFIX_BYTES:]
        self._frame = bytearray(max(min(size, self._trusted_bytes), len(arrived)))
        self._frame[: len(arrived)] = arrived
        self._frame_size, self._filled = size, len(arrived)
        self._unread = b""
        self._server.receiving_bytes += self._filled

    def _drop_frame(self) -> None:
        """The frame's buffer is handed on, or of no use any more."""
        if self._frame is not None:
            self._server.receiving_bytes -= self._filled
            self._frame = None
            self._filled = 0
            self._server.frame_is_over(self)

    def _may_handle(self, api_key: bytes | bytearray) -> bool:
        if self.is_sending_files or self._is_write_paused or not self._server.has_room:
            self._server.wait_for_room(self)
            return False
        if not self._pending:
            return True
        last = self._pending[-1]
        only_produce = api_key == _PRODUCE and last.is_produce and not last.holds_back
        return only_produce and len(self._pending) < PIPELINED_REQUESTS_MAX

    def _begin(self, frame: memoryview) -> None:
        exchange = Exchange(self, len(frame), frame[:2] == _PRODUCE)
        self._pending.append(exchange)
        self._server.in_flight_bytes += exchange.size
        self._handle(exchange, frame.toreadonly())

    def _set_reading(self, wanted: bool) -> None:
        # A whole frame that may not be handled yet is enough to hold: let the kernel hold the rest.
        if self._frame is not None and self._filled == len(self._frame):
            wanted = self._filled < self._frame_size and self._server.may_grow(self)
            if not wanted:
                self._server.wait_for_room(self)
        if self._transport is None or wanted == self._is_reading or self._transport.is_closing():
            return
        self._is_reading = wanted
        now_ms = self._server.clock.monotonic_ms()
        if wanted:
            self._paused_ms += now_ms - self._paused_since_ms
            self._transport.resume_reading()
        else:
            self._paused_since_ms = now_ms
            self._transport.pause_reading()

    # -- responses -----------------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        """A response is there: send all that are next in order."""
        self._server.in_flight_bytes -= exchange.size
        buffers: list[Buffer] = []
        while self._pending and self._pending[0].is_answered:
            first = self._pending.popleft()
            response = first.response
            if isinstance(response, (bytes, bytearray, memoryview)):
                buffers.append(response)
            elif first.is_from_files:
                # It is the only one: a connection has one Fetch at a time in the works, and nothing else.
                self._send_from_files(cast(FromFiles, response))
            elif response is not None:
                buffers.extend(cast(Sequence[Buffer], response))
        if self._transport is not None and not self._transport.is_closing() and buffers:
            if len(buffers) == 1:
                self._transport.write(buffers[0])
            else:
                self._transport.writelines(buffers)
        if self.in_frame:
            self.proceed()
        self._server.gave_room()

    def _send_from_files(self, pieces: FromFiles) -> None:
        """Send once the transport has nothing left to send, since a sender writes past it."""
        if self._transport is None or self._transport.is_closing():
            return
        self._waiting_pieces = pieces
        if self._transport.get_write_buffer_size():
            # With a limit of nothing it pauses at once, and resumes when all is sent.
            self._transport.set_write_buffer_limits(high=0)
        else:
            self._send_waiting()

    def _send_waiting(self) -> None:
        assert self._transport is not None
        assert self._waiting_pieces is not None
        self._transport.set_write_buffer_limits()
        pieces, self._waiting_pieces = self._waiting_pieces, None
        self._sender = self._server.send_from_files(
            self._transport.get_extra_info("socket").fileno(), pieces, self._sent
        )

    def _sent(self, error: BaseException | None) -> None:
        """A response from files is sent, or can't be."""
        self._sender = None
        if error is not None:
            if isinstance(error, Exception) and not isinstance(error, ConnectionError):
                self._server.complain(self, error)
            self.abort()
        self.proceed()

    def complain(self, error: Exception) -> None:
        """Log what is wrong with this client."""
        self._server.complain(self, error)

    def close(self) -> None:
        """Close the connection once what was written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


def grown(frame: bytearray, size: int) -> bytearray:
    """A buffer of twice the length, but at most `size`, that begins with what `frame` holds."""
    larger = bytearray(min(2 * len(frame), size))
    larger[: len(frame)] = frame
    return larger
