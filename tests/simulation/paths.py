"""The ways from each machine of a world to each other: what is sent takes its time, waits, or is lost."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from enum import Enum

from tests.simulation.loop import VirtualLoop

DELAY_SECONDS = 0.001
SLOW_SECONDS = 0.5
SLOW_CHANCE = 0.02


class PathState(Enum):
    """Whether what is sent arrives, later than usual, or never."""

    FINE = "fine"
    SILENT = "silent"
    CUT = "cut"


class Path:
    """One way, from one machine to one other. What arrives does so in the context of the network."""

    def __init__(self, loop: VirtualLoop, context: contextvars.Context, chosen: random.Random) -> None:
        self._loop = loop
        self._context = context
        self._chosen = chosen
        self._held: list[Callable[[], None]] = []
        self.state = PathState.FINE

    def carry(self, arrive: Callable[[], None]) -> None:
        """Call `arrive` after some time, but not while the path is silent."""
        slowest = SLOW_SECONDS if self._chosen.random() < SLOW_CHANCE else DELAY_SECONDS
        self._loop.call_later(self._chosen.random() * slowest, self._arrive, arrive, context=self._context)

    def _arrive(self, arrive: Callable[[], None]) -> None:
        if self.state is PathState.FINE:
            arrive()
        elif self.state is PathState.SILENT:
            self._held.append(arrive)

    def fall_silent(self) -> None:
        """Let nothing arrive, and tell nobody."""
        self.state = PathState.SILENT

    def cut(self) -> None:
        """Lose what is on its way, and all that comes."""
        self.state = PathState.CUT
        self._held.clear()

    def heal(self) -> int:
        """Let everything arrive again, with what was held. Returns how much that was."""
        self.state = PathState.FINE
        held, self._held = self._held, []
        for arrive in held:
            self.carry(arrive)
        return len(held)
