"""A link between brokers: messages to and from one peer, over one connection.

Memory is bounded whatever the peer does. Only some bytes are read ahead of what somebody waits for, and a
frame takes no more memory than has arrived of it. What is to be sent waits with the sender (`drain`).

All messages of a tick of the loop leave with one write. A commit takes some dozens of them, most a few bytes
long, and each write costs more than its message: a system call, and the peer wakes up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import cast

from faircopy.replication.errors import LinkLost, refusal_of
from faircopy.replication.frames import FRAME_BYTES_MAX, FrameReader
from faircopy.replication.message_format import decode, encode
from faircopy.replication.messages import Message

READ_AHEAD_BYTES = 256 << 10
WRITTEN_AT_ONCE_BYTES = 64 << 10
REFUSAL_SECONDS = 5.0

Dial = Callable[[asyncio.Protocol], Awaitable[asyncio.BaseTransport]]
"""Connects a protocol to a peer. Raises OSError."""


class Link(asyncio.Protocol):
    """The protocol of one connection. Belongs to the event loop. One task receives; several may send."""

    def __init__(self, opened: Callable[[Link], None] = lambda link: None) -> None:
        """`opened` is called once there is a connection."""
        self._opened = opened
        self._frames = FrameReader()
        self._arrived: Iterator[memoryview] = iter(())
        self._pieces: deque[bytes] = deque()
        self._ahead_bytes = 0
        self._has_news = asyncio.Event()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._lost: str | None = None
        self._transport: asyncio.Transport

    def trust(self) -> None:
        """The peer has proven who it is: take frames of full size from now on."""
        self._frames.frame_bytes_max = FRAME_BYTES_MAX

    async def receive(self) -> Message:
        """The next message. Raises LinkLost, BadMessage."""
        while True:
            for frame in self._arrived:
                return decode(frame)
            self._arrived = self._frames.take(await self._piece())

    async def _piece(self) -> bytes:
        while not self._pieces:
            self._ensure_connected()
            self._has_news.clear()
            await self._has_news.wait()
        piece = self._pieces.popleft()
        was_full = self._is_full
        self._ahead_bytes -= len(piece)
        if was_full and not self._is_full:
            self._transport.resume_reading()
        return piece

    @property
    def _is_full(self) -> bool:
        return self._ahead_bytes > READ_AHEAD_BYTES

    def send(self, message: Message) -> None:
        """Hand a message to the connection, which takes it in this tick of the loop. Call `drain` before
        there are many of them.
        """
        frame = encode(message)
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._write)
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes >= WRITTEN_AT_ONCE_BYTES:
            self._write()

    def _write(self) -> None:
        frames, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if frames and not self._transport.is_closing():
            self._transport.writelines(frames)

    async def drain(self) -> None:
        """Wait until the connection takes more. Raises LinkLost."""
        await self._may_send.wait()
        self._ensure_connected()

    def refuse(self, why: Exception) -> None:
        """Tell a proven peer why there can be no link, and close the connection once that has left; or after
        a while, if the peer does not read.
        """
        self.send(refusal_of(why))
        self._write()
        self._transport.close()
        asyncio.get_running_loop().call_later(REFUSAL_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close the connection at once, unless a refusal is on its way."""
        if not self._transport.is_closing():
            self._transport.abort()

    def _ensure_connected(self) -> None:
        if self._lost is not None:
            raise LinkLost(self._lost)

    # -- the connection --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # as of uvloop: it is no subclass there
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        was_full = self._is_full
        self._pieces.append(data)
        self._ahead_bytes += len(data)
        if self._is_full and not was_full:
            self._transport.pause_reading()
        self._has_news.set()

    def pause_writing(self) -> None:
        self._may_send.clear()

    def resume_writing(self) -> None:
        self._may_send.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = f"the connection is lost ({exc})" if exc else "the other side has closed the connection"
        self._has_news.set()
        self._may_send.set()


async def open_link(dial: Dial) -> Link:
    """A link to the peer that `dial` connects to. Raises OSError."""
    link = Link()
    await dial(link)
    return link
