"""The clocks that the rest of faircopy gets as arguments. docs/TIME.md says which clock is for what."""

from __future__ import annotations

import json
import time
from typing import NamedTuple, Protocol

from faircopy.storage.system import uptime_ns


class Clock(Protocol):
    """Three clocks: one for people and timestamps, and two that never jump."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump; never measure a duration with it."""

    def steady_ms(self) -> int:
        """For ages and timeouts that outlive the process: never jumps and never goes back, not even over
        restarts.

        It started at the wall clock's time, and since then counts the time that is known to have passed: see
        `SteadyClock`.
        """

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed point, for durations within the process. Never jumps or goes back."""


class MachineClock(Protocol):
    """The clocks of a machine."""

    def wall_ms(self) -> int:
        """As `Clock.wall_ms`."""

    def monotonic_ms(self) -> float:
        """As `Clock.monotonic_ms`."""

    def uptime_ms(self) -> int:
        """Milliseconds since the machine was booted, including those in which it was suspended."""


class SystemClock:
    """This machine's."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6

    def uptime_ms(self) -> int:
        return uptime_ns() // 1_000_000


class SteadyNote(NamedTuple):
    """The stored state of the steady clock: at this uptime of this boot it showed `steady_ms`.

    Until the next note it shows no time later than `limit_ms`. `boot_id` is empty if the boot is not known,
    or if the note is of another directory, which this one is a copy of.
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
    """A machine's clocks, and one that continues over restarts: it counts only time that is known to have
    passed.

    While the machine stays up, it counts all time, whether the broker runs or not. After a boot, on another
    machine, or where the time since boot has been turned back, it continues from the limit of the last note,
    so that it never goes back, and adds nothing: the time since this boot says nothing about how long ago the
    note was made. So whatever expires by age may expire late, by the time in which no broker ran, or early,
    by the interval of the note.
    """

    def __init__(self, machine: MachineClock, boot_id: str = "", noted: SteadyNote | None = None) -> None:
        """`boot_id` differs after each boot of the machine; it is empty if that is not known."""
        self.monotonic_ms = machine.monotonic_ms
        self._machine = machine
        self._boot_id = boot_id
        self._shift_ms = self._first_ms(noted) - machine.uptime_ms()

    def _first_ms(self, noted: SteadyNote | None) -> int:
        if noted is None:
            return self._machine.wall_ms()
        uptime_ms = self._machine.uptime_ms()
        is_same_boot = self._boot_id and self._boot_id == noted.boot_id
        if is_same_boot and uptime_ms >= noted.uptime_ms:
            return noted.steady_ms + uptime_ms - noted.uptime_ms
        return noted.limit_ms

    def wall_ms(self) -> int:
        return self._machine.wall_ms()

    def steady_ms(self) -> int:
        return self._machine.uptime_ms() + self._shift_ms

    def note(self, interval_ms: int) -> SteadyNote:
        """The state to store; another note must follow within `interval_ms`."""
        uptime_ms = self._machine.uptime_ms()
        steady_ms = uptime_ms + self._shift_ms
        return SteadyNote(self._boot_id, uptime_ms, steady_ms, steady_ms + interval_ms)
