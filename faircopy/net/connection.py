"""One client's connection: requests in, responses out, in order.

As in Kafka, a connection has one request at a time in progress, except that Produce requests may follow one
another. Further requests wait, if possible unread in the socket.

If there is a gate (`net/gate.py`) and it is closed, answers stay where they are until it opens, and requests
that have to pass it wait, too. Answers to the others are held only by those before them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from faircopy.net.admission import Admission
from faircopy.net.exchange import Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.net.frames import Frames
from faircopy.net.gate import Gate
from faircopy.net.listeners import Listener
from faircopy.settings.table import Settings
from faircopy.storage.clock import Clock
from faircopy.storage.system import Buffer
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.frames import BadFrame

PIPELINED_REQUESTS_MAX = 256

_API_KEY_BYTES = 2
_PRODUCE = int(ApiKey.PRODUCE).to_bytes(_API_KEY_BYTES, "big")


class Host(Protocol):
    """What a connection needs from the server that accepted it."""

    settings: Settings
    clock: Clock
    admission: Admission[Connection]
    gate: Gate | None

    def opened(self, connection: Connection) -> None:
        """A client has connected; it may be refused."""

    def closed(self, connection: Connection) -> None:
        """The client has disconnected."""

    def over(self, connection: Connection) -> None:
        """The client has disconnected, and none of its requests is in progress any more. May come twice."""

    def room_is_made(self) -> None:
        """Some memory is free again: let the connections that wait for room try again soon."""

    def complain(self, connection: Connection, error: Exception) -> None:
        """Log a client's fault."""

    def send_from_files(
        self, descriptor: int, pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        """Send a response through a socket whose transport has nothing to send."""


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one connection. `number` is unique in this process."""

    def __init__(
        self, host: Host, listener: Listener, number: int, handle: Callable[[Exchange, memoryview], None]
    ) -> None:
        self._host = host
        self._admission = host.admission
        self._gate = host.gate
        self._now_ms = host.clock.monotonic_ms
        self._listener = listener
        self._handle = handle
        self.number = number
        self.peer = ""
        self.advertised = listener.address
        self.frames = Frames(host.settings.request_max_bytes, self._now_ms())
        self._transport: asyncio.Transport | None = None
        self._pending: deque[Exchange] = deque()
        self._is_proceeding = False
        self._is_write_paused = False
        self._waiting_pieces: FromFiles | None = None
        self._sender: FileSender | None = None

    @property
    def listener(self) -> str:
        """The name of the listener that accepted it."""
        return self._listener.name

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return not self._pending

    @property
    def is_open(self) -> bool:
        """Whether the client is still connected."""
        return self._transport is not None

    @property
    def is_sending_files(self) -> bool:
        """Whether a response from files is being sent; later responses have to wait."""
        return self._sender is not None or self._waiting_pieces is not None

    # -- the transport's calls -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not `isinstance`: uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else "local"
        self.advertised = self._listener.address_for(transport.get_extra_info("sockname"))
        self._host.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self.frames.received_bytes:
            self._admission.frame_is_over(self)
            if self._admission.waiting:
                self._host.room_is_made()
        self.frames.drop()
        self._waiting_pieces = None
        if self._sender is not None:
            self._sender.stop()
        self._host.closed(self)
        for exchange in list(self._pending):
            if exchange.when_lost is not None and not exchange.is_answered:
                exchange.when_lost()
        if self._gate is not None:
            self._drop_held(self._gate)
        if not self._pending:
            self._host.over(self)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if self._waiting_pieces is not None:
            self._send_waiting()
        self.proceed()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.frames.room or self.frames.grow()

    def buffer_updated(self, count: int) -> None:
        frames = self.frames
        frames.take(count, self._now_ms())
        if frames.received_bytes and frames.room:
            # The rest of a large frame is still to come, and has room: there is nothing to decide.
            self._admission.receive(self, frames.received_bytes)
        else:
            self.proceed()

    # -- requests --------------------------------------------------------------------------------------------

    def proceed(self) -> None:
        """Handle the received frames as far as the rules allow, and pause or resume reading accordingly."""
        if self._is_proceeding or self._transport is None:
            return
        self._is_proceeding = True
        try:
            is_held = self._handle_frames()
        except BadFrame as error:
            self.complain(error)
            self.close()
            return
        finally:
            self._is_proceeding = False
        if self.frames.received_bytes:
            self._admission.receive(self, self.frames.received_bytes)
        self._read_on(is_held)

    def _handle_frames(self) -> bool:
        """Handle one frame after the other; true if a whole frame must wait. Raises BadFrame."""
        frames = self.frames
        while frames.in_frame:
            frame = frames.next()
            if frame is None:
                return False
            is_produce = frame[:_API_KEY_BYTES] == _PRODUCE
            if self._gate is not None and self._gate.is_for(frame) and self._is_held():
                return True
            if not self._may_handle(is_produce):
                return True
            if frames.received_bytes:
                self._admission.frame_is_over(self)
                if self._admission.waiting:
                    self._host.room_is_made()
            frames.pop()
            self._begin(frame, is_produce)
        return False

    def _may_handle(self, is_produce: bool) -> bool:
        if self.is_sending_files or self._is_write_paused or not self._admission.has_room:
            self._admission.wait(self)
            return False
        if not self._pending:
            return True
        last = self._pending[-1]
        only_produce = is_produce and last.is_produce and not last.blocks_next
        return only_produce and len(self._pending) < PIPELINED_REQUESTS_MAX

    def _begin(self, frame: memoryview, is_produce: bool) -> None:
        exchange = Exchange(self, len(frame), is_produce)
        if self._gate is not None:
            exchange.is_gated = self._gate.is_for(frame)
        self._pending.append(exchange)
        self._admission.begin(exchange.size)
        self._handle(exchange, frame)

    def _read_on(self, is_held: bool) -> None:
        """Read, unless a whole frame has to wait, or the frame that is being received may take no more
        memory.

        One waiting frame is enough: the kernel can hold the rest.
        """
        frames = self.frames
        wanted = not is_held and (bool(frames.room) or self._admission.may_grow(self, self._now_ms()))
        if not wanted and not frames.room:
            self._admission.wait(self)
        if self._transport is None or wanted != frames.is_paused or self._transport.is_closing():
            return
        if wanted:
            frames.resume(self._now_ms())
            self._transport.resume_reading()
        else:
            frames.pause(self._now_ms())
            self._transport.pause_reading()

    # -- responses -------------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        """A response is ready: send all responses that are next in order, unless the gate holds them."""
        if exchange.is_gated and self._is_held():
            return
        buffers: list[Buffer] = []
        while self._pending and self._pending[0].is_answered:
            first = self._pending.popleft()
            self._admission.end(first.size)
            response = first.response
            if isinstance(response, (bytes, bytearray, memoryview)):
                buffers.append(response)
            elif first.is_from_files:
                # It is the only response: while a Fetch is in progress, the connection has no other request.
                self._send_from_files(cast(FromFiles, response))
            elif response is not None:
                buffers.extend(cast(Sequence[Buffer], response))
        if self._transport is not None and not self._transport.is_closing() and buffers:
            if len(buffers) == 1:
                self._transport.write(buffers[0])
            else:
                self._transport.writelines(buffers)
        if self.frames.in_frame:
            self.proceed()
        if self._admission.waiting:
            self._host.room_is_made()
        if self._transport is None and not self._pending:
            self._host.over(self)

    def _send_from_files(self, pieces: FromFiles) -> None:
        """Send once the transport has nothing left to send, since a sender bypasses it."""
        if self._transport is None or self._transport.is_closing():
            return
        self._waiting_pieces = pieces
        if self._transport.get_write_buffer_size():
            # With a limit of 0 the transport pauses us at once, and resumes us when all is sent.
            self._transport.set_write_buffer_limits(high=0)
        else:
            self._send_waiting()

    def _send_waiting(self) -> None:
        if self._is_held():
            return
        assert self._transport is not None
        assert self._waiting_pieces is not None
        self._transport.set_write_buffer_limits()
        pieces, self._waiting_pieces = self._waiting_pieces, None
        descriptor = self._transport.get_extra_info("socket").fileno()
        self._sender = self._host.send_from_files(descriptor, pieces, self._sent)

    def _sent(self, error: BaseException | None) -> None:
        """A response from files was sent, or could not be sent."""
        self._sender = None
        if error is not None:
            if isinstance(error, Exception) and not isinstance(error, ConnectionError):
                self.complain(error)
            self.abort()
        self.proceed()

    # -- the gate --------------------------------------------------------------------------------------------

    def _is_held(self) -> bool:
        """Whether the gate is closed; if so, the connection goes on when it opens. If the client is gone,
        there is nothing to hold.
        """
        if self._gate is None or self._transport is None or not self._gate.is_closed:
            return False
        self._gate.hold(self)
        return True

    def gate_opened(self) -> None:
        """Send what was held, and go on."""
        if self._waiting_pieces is not None and not self._is_write_paused:
            self._send_waiting()
        elif self._pending:
            self.answered(self._pending[0])
        self.proceed()

    def _drop_held(self, gate: Gate) -> None:
        """The client is gone: nobody gets the answers that were held."""
        gate.forget(self)
        while self._pending and self._pending[0].is_answered:
            self._admission.end(self._pending.popleft().size)
        if self._admission.waiting:
            self._host.room_is_made()

    # -- the end ---------------------------------------------------------------------------------------------

    def complain(self, error: Exception) -> None:
        """Log a fault of this client."""
        self._host.complain(self, error)

    def close(self) -> None:
        """Close the connection after sending what was written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
