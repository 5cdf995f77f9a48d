"""The network between the machines of a world, and what goes wrong with it.

Machines have numbers, from 0. Each process that runs on one may listen, and connect to the others.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.paths import Path, PathState
from tests.simulation.wires import Host, Signal, Stream, WireEnd

TOLD_SECONDS = 3.0
AGAIN_SECONDS = 3.0
REFUSED, RESET_BY_A_CUT, HELD = (
    "wire: refused, since nobody listens",
    "wire: reset, since a path was cut",
    "wire: what was sent while a path was silent arrived later",
)


class Wire(NamedTuple):
    """A connection: its ends, with the stream from each of them to the other."""

    ends: tuple[WireEnd, WireEnd]
    streams: dict[tuple[int, int], Stream]


class Switch:
    """All paths and connections. All chance of the network comes from `chosen`."""

    def __init__(self, loop: VirtualLoop, machines: int, chosen: random.Random, coverage: Coverage) -> None:
        self._loop = loop
        self._chosen = chosen
        self._coverage = coverage
        self._context = contextvars.copy_context()
        coverage.announce(REFUSED, RESET_BY_A_CUT, HELD)
        numbers = range(machines)
        self._hosts = [Host(Life("before the first process")) for _ in numbers]
        self.paths = {
            (source, to): Path(loop, self._context, chosen)
            for source in numbers
            for to in numbers
            if source != to
        }
        self._wires: list[Wire] = []

    def others(self, machine: int) -> list[int]:
        """The machines that this one has a path to."""
        return [to for source, to in self.paths if source == machine]

    # -- processes -------------------------------------------------------------------------------------------

    def begin(self, machine: int, life: Life) -> None:
        """A process begins on a machine."""
        host = self._hosts[machine]
        host.life, host.accept = life, None
        unanswered, host.unanswered = host.unanswered, []
        for end in unanswered:  # what was sent to the machine meanwhile is sent once more
            delay = self._chosen.random() * AGAIN_SECONDS
            self._loop.call_later(delay, end.answer_for_nobody, context=self._context)

    def listen(self, machine: int, factory: Callable[[], asyncio.Protocol]) -> None:
        """Let the machine's process accept connections, each with a protocol from the factory."""
        self._hosts[machine].accept = factory

    def listen_no_more(self, machine: int) -> None:
        """Let the machine's process accept no more connections."""
        self._hosts[machine].accept = None

    async def connect(self, source: int, to: int, protocol: asyncio.Protocol) -> WireEnd:
        """Connect the process of one machine to that of another. Raises ConnectionRefusedError. It waits for
        an answer as long as there is none.
        """
        near = self._end(source, protocol)
        if PathState.CUT in (self.paths[source, to].state, self.paths[to, source].state):
            raise ConnectionRefusedError("there is no way")
        self.paths[source, to].carry(lambda: self._ring(source, to, near))
        await near.opened
        return near

    def _end(self, machine: int, protocol: asyncio.Protocol) -> WireEnd:
        return WireEnd(self._loop, self._hosts[machine], protocol, self._chosen, self._coverage)

    def _ring(self, source: int, to: int, near: WireEnd) -> None:
        """The wish for a connection has come."""
        host = self._hosts[to]
        if host.life.is_over or host.accept is None:
            if host.has_power:
                self._coverage.hit(REFUSED)
                self.paths[to, source].carry(near.refuse)
            return
        far = self._end(to, host.life.context.run(host.accept))
        there, back = self._stream(source, to, far), self._stream(to, source, near)
        self._wires = [wire for wire in self._wires if not all(end.is_closing() for end in wire.ends)]
        self._wires.append(Wire((near, far), {(source, to): there, (to, source): back}))
        far.receive(Signal.OPEN)
        far.wire(back)
        back.send(Signal.OPEN)
        near.wire(there)

    def _stream(self, source: int, to: int, end: WireEnd) -> Stream:
        return Stream(self.paths[source, to], end.receive)

    # -- faults ----------------------------------------------------------------------------------------------

    def cut(self, source: int, to: int) -> None:
        """Cut one way: connections that use it are reset, and both ends are told, now or later."""
        self.paths[source, to].cut()
        for wire in self._wires_over(source, to):
            self._coverage.hit(RESET_BY_A_CUT)
            wire.streams[source, to].break_off()
            for end in wire.ends:
                delay = self._chosen.random() * TOLD_SECONDS
                self._loop.call_later(delay, end.receive, Signal.RESET, context=self._context)

    def fall_silent(self, source: int, to: int) -> None:
        """Let nothing arrive on one way, and tell nobody."""
        self.paths[source, to].fall_silent()

    def _wires_over(self, source: int, to: int) -> Iterator[Wire]:
        return (wire for wire in self._wires if (source, to) in wire.streams)

    def heal(self, source: int, to: int) -> None:
        """Let one way be as it was."""
        if self.paths[source, to].heal():
            self._coverage.hit(HELD)
