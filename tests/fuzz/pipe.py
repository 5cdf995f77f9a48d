"""One connection to a broker in this process: both ends of it, on a network that takes no time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from faircopy.net.server import Server
from faircopy.storage.system import Buffer
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.network import LISTENER

LENGTH_BYTES = 4


class Pipe(asyncio.Transport):
    """The broker's transport, and the client's end of it. Reading can be paused, as on a real one."""

    def __init__(self, loop: VirtualLoop, life: Life, server: Server) -> None:
        super().__init__()
        self._loop = loop
        self._context = life.context
        self._protocol = server.accept(LISTENER)
        self._unsent = bytearray()
        self._unread = bytearray()
        self._is_paused = False
        self.is_open = True
        self.responses: dict[int, bytes] = {}
        loop.call_soon(self._protocol.connection_made, self, context=self._context)

    # -- the client's end ------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether no request is in the works, and none waits for its turn."""
        return self._protocol.is_idle and not self._unsent

    def send(self, data: bytes) -> None:
        self._unsent += data
        self._loop.call_soon(self._deliver, context=self._context)

    def hang_up(self) -> None:
        """The client goes."""
        if self.is_open:
            self._loop.call_soon(self.close, context=self._context)

    def _deliver(self) -> None:
        while self._unsent and self.is_open and not self._is_paused:
            buffer = self._protocol.get_buffer(-1)
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")  # as asyncio has it
            count = min(len(buffer), len(self._unsent))
            buffer[:count] = self._unsent[:count]
            del self._unsent[:count]
            self._protocol.buffer_updated(count)

    # -- the broker's end ------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 1) if name == "peername" else default

    def write(self, data: Buffer) -> None:
        self._unread += data
        while len(self._unread) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._unread[:LENGTH_BYTES], "big")
            if len(self._unread) < end:
                break
            frame = bytes(self._unread[LENGTH_BYTES:end])
            self.responses[int.from_bytes(frame[:4], "big", signed=True)] = frame
            del self._unread[:end]

    def writelines(self, buffers: Iterable[Buffer]) -> None:
        self.write(b"".join(buffers))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._deliver, context=self._context)

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._unsent.clear()
            self._loop.call_soon(self._protocol.connection_lost, None, context=self._context)

    abort = close
