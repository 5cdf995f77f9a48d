"""Brokers that talk to each other: each keeps a line to each other machine, and checks what it hears.

It proves the connections of a world: within one, everything comes in order and once, nothing is lost, and
nothing comes from a process that is over.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import struct
from typing import NamedTuple

from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.switch import Switch

MESSAGE = struct.Struct("<4Q")
PAUSE_SECONDS = 0.5
REDIAL_SECONDS = 0.5
PATIENCE_SECONDS = 2.0
HUSH_SECONDS = 3.0
TALKED, WHOLE = "chatter: a message was heard", "chatter: at the end, all that was said on a line was heard"


class Message(NamedTuple):
    """`machine` and `process` say it as their `number`th on the line `line`, which the caller has named."""

    machine: int
    process: int
    line: int
    number: int


class Talk:
    """All lines of a world. `wrong` is what should not have been heard, or should have been."""

    def __init__(self, loop: VirtualLoop, switch: Switch, chosen: random.Random, coverage: Coverage) -> None:
        self.loop = loop
        self.switch = switch
        self.chosen = chosen
        self.coverage = coverage
        coverage.announce(TALKED, WHOLE)
        self.wrong: list[str] = []
        self.is_hushed = False
        self.processes = itertools.count(1)
        self.names = itertools.count(1)
        self.lines: list[Line] = []

    def begin(self, machine: int, life: Life) -> None:
        """Let a new process talk to all others."""
        self.switch.begin(machine, life)
        speaker = Speaker(self, machine, life, next(self.processes))
        self.switch.listen(machine, lambda: Line(speaker, None))
        for other in self.switch.others(machine):
            self.loop.create_task(speaker.keep_line(other), context=life.context)

    async def check(self) -> None:
        """Speak no more, and note what is missing on the lines of processes that run. When this begins, all
        machines have been well for a while; some may come to their end meanwhile.
        """
        self.is_hushed = True
        lonely = {name for name, lines in self._open().items() if len(lines) == 1}
        await asyncio.sleep(HUSH_SECONDS)
        for name, lines in self._open().items():
            if len(lines) == 2:
                self._compare(*lines)
            elif name in lonely:
                self.wrong.append(f"line {name} is open at one end only: {lines[0]}")

    def _open(self) -> dict[int, list[Line]]:
        """The open ends of each line that has a name at both."""
        ends: dict[int, list[Line]] = {}
        for line in self.lines:
            if line.is_open and line.name is not None:
                ends.setdefault(line.name, []).append(line)
        return ends

    def _compare(self, one: Line, other: Line) -> None:
        if (one.said, other.said) != (other.heard, one.heard):
            self.wrong.append(f"something was lost between {one} and {other}")
        self.coverage.hit(WHOLE)


class Speaker:
    """One process of a machine, which talks."""

    def __init__(self, talk: Talk, machine: int, life: Life, process: int) -> None:
        self.talk = talk
        self.machine = machine
        self.life = life
        self.process = process

    async def keep_line(self, other: int) -> None:
        """Call the other machine, again and again."""
        while True:
            await asyncio.sleep(self.talk.chosen.random() * REDIAL_SECONDS)
            line = Line(self, next(self.talk.names))
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self.talk.switch.connect(self.machine, other, line)
            except (OSError, TimeoutError):
                continue
            await line.over


class Line(asyncio.Protocol):
    """One end of a line. Who was called learns the line's name from the first message."""

    def __init__(self, speaker: Speaker, name: int | None) -> None:
        self._speaker = speaker
        self._talk = speaker.talk
        self.name = name
        self.said = self.heard = 0
        self._other: tuple[int, int] | None = None
        self._unread = b""
        self._has_ended = False
        self.over: asyncio.Future[None] = self._talk.loop.create_future()

    def __repr__(self) -> str:
        other = f"process {self._other[1]}" if self._other else "nobody yet"
        return (
            f"process {self._speaker.process} on machine {self._speaker.machine} with {other} "
            f"({self.said} said, {self.heard} heard)"
        )

    @property
    def is_open(self) -> bool:
        """Whether its process runs, and has not lost it."""
        return not self._has_ended and self._speaker.life.is_running

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._talk.lines.append(self)
        if self.name is not None:
            self._speak()

    def _speak(self) -> None:
        if self._has_ended or self._talk.is_hushed or self.name is None:
            return
        message = Message(self._speaker.machine, self._speaker.process, self.name, self.said)
        self.said += 1
        self._transport.write(MESSAGE.pack(*message))
        self._talk.loop.call_later(self._talk.chosen.random() * PAUSE_SECONDS, self._speak)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= MESSAGE.size:
            self._hear(Message(*MESSAGE.unpack(self._unread[: MESSAGE.size])))
            self._unread = self._unread[MESSAGE.size :]

    def _hear(self, message: Message) -> None:
        if self._other is None:
            self._other = message.machine, message.process
        if self.name is None:
            self.name = message.line
            self._speak()
        expected = Message(*self._other, self.name, self.heard)
        if message != expected or self._has_ended:
            self._talk.wrong.append(f"{self} heard {message} instead of {expected}")
        self.heard += 1
        self._talk.coverage.hit(TALKED)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._has_ended:
            self._talk.wrong.append(f"{self} was lost twice")
        self._has_ended = True
        if not self.over.done():
            self.over.set_result(None)
