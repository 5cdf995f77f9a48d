"""A link in memory, with the leader's end in the hands of a test."""

from __future__ import annotations

import asyncio

from faircopy.replication.errors import LinkLost, refusal_of
from faircopy.replication.frames import BadMessage
from faircopy.replication.link import Link
from faircopy.replication.message_format import encode
from faircopy.replication.messages import Acks, Hello, Message


class MemoryLink(Link):
    """`sent` is what the follower has sent. While `is_stuck`, nothing of that leaves."""

    def __init__(self) -> None:
        self._arriving: asyncio.Queue[Message | Exception] = asyncio.Queue()
        self._unstuck = asyncio.Event()
        self._unstuck.set()
        self.sent: list[Message] = []
        self.is_aborted = False

    def arrive(self, *messages: Message | Exception) -> None:
        """What the leader sends; an exception is what receiving raises."""
        for message in messages:
            self._arriving.put_nowait(message)

    def get_stuck(self) -> None:
        self._unstuck.clear()

    def get_free(self) -> None:
        self._unstuck.set()

    async def receive(self) -> Message:
        message = await self._arriving.get()
        if isinstance(message, Exception):
            raise message
        return message

    def send(self, message: Message) -> None:
        assert encode(message)
        self.sent.append(message)

    async def drain(self) -> None:
        await self._unstuck.wait()
        if self.is_aborted:
            raise LinkLost("the connection was closed")

    def refuse(self, why: Exception) -> None:
        self.send(refusal_of(why))
        self.abort()

    def abort(self) -> None:
        self.is_aborted = True
        self.arrive(LinkLost("the connection was closed"))

    def heard(self) -> list[Message]:
        """What the follower has sent since the last call, without acks that name nothing."""
        sent, self.sent = self.sent, []
        return [each for each in sent if not isinstance(each, Acks) or each.journals]


async def prove(link: Link) -> Hello:
    """Stands in for the handshake: who says HELLO is believed."""
    message = await link.receive()
    if not isinstance(message, Hello):
        raise BadMessage(f"{type(message).__name__} is no HELLO")
    return message
