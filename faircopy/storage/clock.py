"""Time, as the rest of faircopy is given it. docs/TIME.md says which clock each duration uses."""

from __future__ import annotations

import json
import time
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """Three clocks: one that people and timestamps mean, and two that never jump."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump; never measure a duration with it."""

    def steady_ms(self) -> int:
        """For ages and timeouts that outlive the process: never jumps, never goes back, not over restarts either.

        It began as the wall clock, and has counted since what is known to have passed: see `SteadyClock`.
        """

    def monotonic_ms(self) -> float:
        """For durations within the process. Milliseconds since some fixed point; never jumps, never goes back."""


class MachineClock(Protocol):
    """The clocks that a machine has."""

    def wall_ms(self) -> int:
        """As `Clock.wall_ms`."""

    def monotonic_ms(self) -> float:
        """As `Clock.monotonic_ms`."""

    def uptime_ms(self) -> int:
        """Milliseconds since the machine was booted, also those in which it was suspended."""


class SystemClock:
    """This machine's."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6

    def uptime_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class SteadyNote(NamedTuple):
    """What is kept of the steady clock, so that it goes on: at this uptime of this boot it showed `steady_ms`.

    Until the next note it shows nothing beyond `limit_ms`.
    """

    boot_id: str
    uptime_ms: int
    steady_ms: int
    limit_ms: int

    def encode(self) -> bytes:
        """The note as JSON."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, value: bytes) -> SteadyNote:
        """The note in this JSON."""
        return cls(**json.loads(value))


class SteadyClock:
    """A machine's clocks, and one that goes on over restarts: it counts only time that is known to have passed.

    While the machine stays up, that is all time, whether the broker runs or not. After a boot it goes on from the last
    note's limit, so that it never goes back; how long the machine was off cannot be known, and does not count. So what
    has an age goes late rather than early, by as much as the machine was off, or early by the time between two notes.
    """

    def __init__(self, machine: MachineClock, boot_id: str = "", noted: SteadyNote | None = None) -> None:
        """`boot_id` is another one after each boot of the machine, empty where that is not known."""
        self.monotonic_ms = machine.monotonic_ms
        self._machine = machine
        self._boot_id = boot_id
        self._shift_ms = self._first_ms(noted) - machine.uptime_ms()

    def _first_ms(self, noted: SteadyNote | None) -> int:
        if noted is None:
            return self._machine.wall_ms()
        uptime_ms = self._machine.uptime_ms()
        if self._boot_id and self._boot_id == noted.boot_id:
            return noted.steady_ms + uptime_ms - noted.uptime_ms
        return noted.limit_ms + (uptime_ms if self._boot_id else 0)

    def wall_ms(self) -> int:
        return self._machine.wall_ms()

    def steady_ms(self) -> int:
        return self._machine.uptime_ms() + self._shift_ms

    def note(self, interval_ms: int) -> SteadyNote:
        """What to keep; another note must follow within `interval_ms`."""
        uptime_ms = self._machine.uptime_ms()
        steady_ms = uptime_ms + self._shift_ms
        return SteadyNote(self._boot_id, uptime_ms, steady_ms, steady_ms + interval_ms)
