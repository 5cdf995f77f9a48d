"""What a link hands to its connection, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from faircopy.replication.errors import Refused
from faircopy.replication.frames import FRAME_BYTES_MAX, FrameReader
from faircopy.replication.link import WRITTEN_AT_ONCE_BYTES, Link
from faircopy.replication.message_format import decode
from faircopy.replication.messages import Acks, Data, Marks, Message, Refusal

JOURNAL = bytes(20)
ACKS = Acks((), False)
MARKS = Marks(1, 12, {1: 57}, ())


class Wire(asyncio.Transport):
    """A connection that only notes what is done with it: each write, and the end."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[Message]] = []
        self.has_ended = False

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        reader = FrameReader()
        reader.frame_bytes_max = FRAME_BYTES_MAX
        self.writes.append([decode(bytes(frame)) for frame in reader.take(b"".join(list_of_data))])

    def is_closing(self) -> bool:
        return self.has_ended

    def close(self) -> None:
        self.has_ended = True

    def abort(self) -> None:
        self.has_ended = True


def run(scene: Callable[[Link, Wire], Awaitable[None]]) -> None:
    async def main() -> None:
        link, wire = Link(), Wire()
        link.connection_made(wire)
        await scene(link, wire)

    asyncio.run(main())


def data(position: int, size: int) -> Data:
    return Data(JOURNAL, position, 0, bytes(size))


def test_the_messages_of_a_tick_leave_with_one_write() -> None:
    async def scene(link: Link, wire: Wire) -> None:
        for message in (data(0, 10), data(10, 5), MARKS):
            link.send(message)
            await link.drain()
        assert wire.writes == []
        await asyncio.sleep(0)
        link.send(ACKS)
        await asyncio.sleep(0)
        assert wire.writes == [[data(0, 10), data(10, 5), MARKS], [ACKS]]
        await asyncio.sleep(0)
        assert len(wire.writes) == 2, "nothing is written twice"

    run(scene)


def test_what_is_large_leaves_at_once() -> None:
    """Otherwise nobody would hear that the connection takes no more."""

    async def scene(link: Link, wire: Wire) -> None:
        small, large = data(0, 10), data(10, WRITTEN_AT_ONCE_BYTES)
        link.send(small)
        link.send(large)
        assert wire.writes == [[small, large]]
        link.send(ACKS)
        await asyncio.sleep(0)
        assert wire.writes == [[small, large], [ACKS]]

    run(scene)


def test_a_refusal_leaves_after_all_else_and_before_the_end() -> None:
    async def scene(link: Link, wire: Wire) -> None:
        link.send(MARKS)
        link.refuse(Refused("it has another history"))
        assert wire.writes == [[MARKS, Refusal("it has another history")]]
        assert wire.has_ended

    run(scene)


def test_what_is_sent_when_the_connection_ends_is_forgotten() -> None:
    async def scene(link: Link, wire: Wire) -> None:
        link.send(MARKS)
        link.abort()
        await asyncio.sleep(0)
        assert wire.writes == []

    run(scene)
