"""Connections between the machines of a world, with both of their ends.

A connection keeps its bytes in order, as TCP does. Each end belongs to the process that has opened it:

* A process that is killed resets its connections, and so does one that closes them.
* A machine that loses power says nothing. Who sends to it later is told once the machine is up again.
* What arrives for a process that is stopped waits for it.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.paths import Path

SPLIT_CHANCE = 0.1
OVERTAKING_CHANCE = 0.3
RESET_BY_A_PROCESS, RESET_AFTER_POWER = (
    "wire: reset, since a process has ended",
    "wire: reset, since a machine has lost power",
)


class Signal(Enum):
    """What travels beside bytes."""

    OPEN = "open"
    CLOSE = "close"
    RESET = "reset"


Item = bytes | Signal


class Host:
    """A machine as the network knows it: the newest process there, who listens, and who was not answered."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.accept: Callable[[], asyncio.Protocol] | None = None
        self.unanswered: list[WireEnd] = []

    @property
    def has_power(self) -> bool:
        return not self.life.ended_silently


class Stream:
    """One direction of a connection. Whatever arrives, what was sent first comes first."""

    def __init__(self, path: Path, receive: Callable[[Item], None]) -> None:
        self._path = path
        self._receive = receive
        self._items: deque[Item] = deque()
        self._is_broken = False

    def send(self, item: Item) -> None:
        if not self._is_broken:
            self._items.append(item)
            self._path.carry(self._arrive)

    def overtake(self, item: Item) -> None:
        """Send this instead of all that is on its way."""
        self._items.clear()
        self.send(item)

    def break_off(self) -> None:
        """Let nothing arrive any more."""
        self._is_broken = True
        self._items.clear()

    def _arrive(self) -> None:
        if self._items:
            self._receive(self._items.popleft())


class WireEnd(asyncio.Transport):
    """One end of a connection, which a process writes to. `wire` joins it to the other end."""

    def __init__(
        self,
        loop: VirtualLoop,
        host: Host,
        protocol: asyncio.Protocol,
        chosen: random.Random,
        coverage: Coverage,
    ) -> None:
        super().__init__()
        self._loop = loop
        self._host = host
        self._life = host.life
        self._protocol = protocol
        self._chosen = chosen
        self._coverage = coverage
        self._outgoing: Stream | None = None
        self._is_closing = False
        self._unread: deque[Item] = deque()
        self._is_reading = True
        self.opened: asyncio.Future[None] = loop.create_future()
        # Whoever has called may be gone by then.
        self.opened.add_done_callback(lambda opened: None if opened.cancelled() else opened.exception())

    def wire(self, outgoing: Stream) -> None:
        """Join this end to the other one."""
        self._outgoing = outgoing
        self._life.when_over(self._process_ended)

    # -- the process that has it -----------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        content = bytes(data)
        if self._is_closing or self._life.is_over or not content:
            return
        middle = self._chosen.randrange(len(content)) if self._chosen.random() < SPLIT_CHANCE else 0
        for part in filter(None, (content[:middle], content[middle:])):
            self._send(part)

    def is_closing(self) -> bool:
        """Also if nobody waits any longer for the connection."""
        return self._is_closing or self.opened.cancelled()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._loop.call_soon(self._read, context=self._life.context)

    def close(self) -> None:
        """Let what was written arrive, then close the other end, too."""
        if not self._is_closing and not self._life.is_over:
            self._send(Signal.CLOSE)
            self._loop.call_soon(self._lose, None, context=self._life.context)
            self._is_closing = True

    def abort(self) -> None:
        """Close both ends; what was written may be lost."""
        if not self._is_closing and not self._life.is_over:
            self._reset()
            self._loop.call_soon(self._lose, None, context=self._life.context)
            self._is_closing = True

    # -- the network -----------------------------------------------------------------------------------------

    def receive(self, item: Item) -> None:
        """What has arrived at the machine waits for the process, unless that has ended."""
        if not self._life.is_over and not self.is_closing():
            self._loop.call_soon(self._take, item, context=self._life.context)
        elif item not in (Signal.CLOSE, Signal.RESET):
            self.answer_for_nobody()

    def answer_for_nobody(self) -> None:
        """Tell the other end that this one is gone, unless the machine is off."""
        if not self._host.has_power:
            self._host.unanswered.append(self)
            return
        if self._life.ended_silently:
            self._coverage.hit(RESET_AFTER_POWER)
        self._send(Signal.RESET)

    def _take(self, item: Item) -> None:
        self._unread.append(item)
        self._read()

    def _read(self) -> None:
        while self._is_reading and self._unread:
            self._read_one(self._unread.popleft())

    def _read_one(self, item: Item) -> None:
        if self.is_closing():
            self.receive(item)
        elif item is Signal.OPEN:
            self.opened.set_result(None)
            self._protocol.connection_made(self)
        elif isinstance(item, bytes):
            self._protocol.data_received(item)
        else:
            self._is_closing = True
            self._lose(ConnectionResetError("the connection was reset") if item is Signal.RESET else None)

    def refuse(self) -> None:
        """Nobody listens at the other end."""
        if not self.is_closing() and not self._life.is_over:
            self._is_closing = True
            self.opened.set_exception(ConnectionRefusedError("nobody listens"))

    def _lose(self, error: Exception | None) -> None:
        if self.opened.done():
            self._protocol.connection_lost(error)
        else:
            self.opened.set_exception(error or ConnectionResetError("closed before it was open"))

    def _process_ended(self) -> None:
        if not self.is_closing() and not self._life.ended_silently:
            self._coverage.hit(RESET_BY_A_PROCESS)
            self._reset()

    def _reset(self) -> None:
        if self._outgoing is None:
            return
        if self._chosen.random() < OVERTAKING_CHANCE:
            self._outgoing.overtake(Signal.RESET)
        else:
            self._outgoing.send(Signal.RESET)

    def _send(self, item: Item) -> None:
        if self._outgoing is not None:
            self._outgoing.send(item)
