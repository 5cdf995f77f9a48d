"""One link of a leader that has proven who it is: what it sends goes to the replica, and is acked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from faircopy.loop.waiting import until_one_ends
from faircopy.replication.errors import LinkLost, RefusedByPeer
from faircopy.replication.frames import BadMessage
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import Acks, Alignment, Comparison, Data, Hello, Marks, Message, Refusal
from faircopy.replication.replica import Replica
from faircopy.replication.timing import Timing

ALIGNED_JOURNALS_MAX = 1_000
ACKED_JOURNALS_MAX = 4_096

Row = TypeVar("Row")


class Feed:
    """Belongs to the event loop. `is_short`: whether the disk is nearly full. `bytes_taken` counts DATA."""

    def __init__(
        self,
        link: Link,
        hello: Hello,
        replica: Replica,
        is_short: Callable[[], bool],
        on_marks: Callable[[Marks], None],
        timing: Timing,
    ) -> None:
        self.leader = Life(hello.broker, hello.incarnation)
        self.epoch = hello.epoch
        self.bytes_taken = 0
        self._link = link
        self._replica = replica
        self._is_short = is_short
        self._on_marks = on_marks
        self._timing = timing
        self._has_news = asyncio.Event()

    def __str__(self) -> str:
        return f"{self.leader}, which leads in epoch {self.epoch}"

    @property
    def rank(self) -> tuple[int, int]:
        """Greater for a newer leader."""
        return self.epoch, self.leader.incarnation

    async def run(self) -> None:
        """Feed the replica until the link ends.

        Raises LinkLost, RefusedByPeer, or what is wrong with the leader: BadMessage, BadCopy, Refused.
        """
        await until_one_ends(self._receive(), self._ack())

    def send_ack(self) -> None:
        """There is something to say: journals have moved, or space is short, or no longer."""
        self._has_news.set()

    # -- what comes ------------------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while True:
            await self._handle(await self._next())

    async def _next(self) -> Message:
        """The next message. Only waiting for the leader counts as its silence, not waiting for the disk."""
        try:
            async with asyncio.timeout(self._timing.silence_seconds):
                return await self._link.receive()
        except TimeoutError:
            raise LinkLost(f"nothing came for {self._timing.silence_seconds:g} s") from None

    async def _handle(self, message: Message) -> None:
        match message:
            case Data():
                self.bytes_taken += len(message.content)
                await self._replica.take(message)
            case Marks():
                for each in message.journals:
                    self._replica.mark(each)
                self._on_marks(message)
            case Comparison():
                await self._compare(message)
            case Refusal():
                raise RefusedByPeer(f"it refuses this broker: {message.reason!r}")
            case _:
                raise BadMessage(f"{type(message).__name__} is nothing that a leader sends")

    async def _compare(self, comparison: Comparison) -> None:
        journals, done = comparison.journals, 0
        for some in in_parts(journals, ALIGNED_JOURNALS_MAX):
            aligned = tuple([await self._replica.align(each) for each in some])
            done += len(some)
            self._link.send(Alignment(aligned, comparison.is_last and done == len(journals)))
            await self._link.drain()

    # -- acks ------------------------------------------------------------------------------------------------

    async def _ack(self) -> None:
        """Whenever something has moved, and with each heartbeat. What moves meanwhile goes with the next."""
        while True:
            self._has_news.clear()
            for some in in_parts(self._replica.take_moved(), ACKED_JOURNALS_MAX):
                self._link.send(Acks(tuple(some), self._is_short()))
                await self._link.drain()
            await self._news()

    async def _news(self) -> None:
        try:
            async with asyncio.timeout(self._timing.heartbeat_seconds):
                await self._has_news.wait()
        except TimeoutError:
            return


def in_parts(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """All rows, at most `size` at a time; one empty part if there are none."""
    for at in range(0, max(len(rows), 1), size):
        yield rows[at : at + size]
