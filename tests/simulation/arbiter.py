"""The arbiter of a simulated machine's replica set: in memory, with leases that end by its own clock."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Sequence

from faircopy.arbiter.backend import Attempt, StoreUnavailable
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.simulation.coverage import Coverage
from tests.simulation.loop import VirtualLoop

BROKER_IDS = (1, 2)
DRIFT = 0.05
"""How much faster or slower than others a clock may be, of 1. A lease's margin covers twice that."""
LEASE_SECONDS = (1.0, 2.0)
LATE_SECONDS = 5.0
IN_TROUBLE = 0.05
HELD, LOST = "arbiter: answers were held", "arbiter: a lease was lost"


class SimulatedArbiter:
    """The arbiter, and what goes wrong on the way to it. `violations`: answers that left without a lease."""

    def __init__(
        self,
        loop: VirtualLoop,
        chosen: random.Random,
        coverage: Coverage,
        broker_ids: Sequence[int] = BROKER_IDS,
    ) -> None:
        """`broker_ids`: which brokers start on the directory of whoever leads."""
        coverage.announce(HELD, LOST)
        self.loop = loop
        self.coverage = coverage
        self.chosen = chosen
        self.server = MemoryServer()
        self.troubles = Troubles()
        self._broker_ids = broker_ids
        self.pace = 1 + chosen.uniform(-DRIFT, DRIFT)
        self.lease_seconds = chosen.uniform(*LEASE_SECONDS)
        self.is_away = False
        self.violations: list[str] = []
        self.context = contextvars.copy_context()
        """That of no life: what the arbiter does goes on when a broker dies."""
        self.newest: TimedBackend | None = None
        self._ended_early = set[int]()

    def backend(self) -> TimedBackend:
        """The way of a new life to the arbiter, which is to lead."""
        self.newest = TimedBackend(self)
        return self.newest

    def backend_of_follower(self) -> TimedBackend:
        """The way of a new life to the arbiter, which is to follow."""
        return TimedBackend(self)

    def broker_id(self) -> int:
        """Which broker starts next on the machine's directory."""
        return self.chosen.choice(self._broker_ids)

    def worsen(self) -> None:
        """Lose answers, delay them, and forget changes, now and then."""
        for name in ("unanswered", "unavailable", "slow", "forgets"):
            setattr(self.troubles, name, self.chosen.choice([0.0, IN_TROUBLE]))

    def clear(self) -> None:
        """Let everything go well."""
        self.is_away = False
        for name in ("unanswered", "unavailable", "slow", "forgets"):
            setattr(self.troubles, name, 0.0)

    @property
    def lease(self) -> int | None:
        """The lease of the newest life, if it is still there."""
        leases = self.newest.leases if self.newest is not None else []
        return leases[-1] if leases and self.server.is_kept(leases[-1]) else None

    def end_early(self) -> None:
        """End a lease before its time, as etcd may (its issue 15247)."""
        lease = self.lease
        if lease is not None:
            self._ended_early.add(lease)
            self.server.expire(lease)

    def note_answer(self) -> None:
        """An answer leaves. By the arbiter's own clock, the lease of its life must still be there."""
        leases = self.newest.leases if self.newest is not None else []
        if not leases:
            self.violations.append(f"an answer left before any lease, at {self.loop.now:.3f}")
        elif not self.server.is_kept(leases[-1]) and leases[-1] not in self._ended_early:
            self.violations.append(f"an answer left after the end of its lease, at {self.loop.now:.3f}")


class TimedBackend(MemoryBackend):
    """One life's way to the arbiter."""

    def __init__(self, arbiter: SimulatedArbiter) -> None:
        super().__init__(arbiter.server, arbiter.chosen, arbiter.troubles)
        self._arbiter = arbiter
        self._ends: dict[int, asyncio.TimerHandle] = {}

    async def grant(self, seconds: float) -> int:
        lease = await super().grant(seconds)
        self._begin(lease)
        return lease

    async def keep_alive(self, lease: int) -> bool:
        is_kept = await super().keep_alive(lease)
        if is_kept:
            self._begin(lease)
        # The answer may be late, too: the lease began before it.
        is_slow = self._happens(self.troubles.slow)
        await asyncio.sleep(self._arbiter.chosen.random() / (1 if is_slow else 100))
        return is_kept

    def _begin(self, lease: int) -> None:
        """The lease's time begins now."""
        if lease in self._ends:
            self._ends[lease].cancel()
        loop, seconds = self._arbiter.loop, self._arbiter.lease_seconds / self._arbiter.pace
        self._ends[lease] = loop.call_later(seconds, self.server.expire, lease, context=self._arbiter.context)

    def _lose(self, attempt: Attempt) -> None:
        """As in any backend; but a write may land even after the end of its life."""
        fate = self._arbiter.chosen.choice(("at once", "late", "never"))
        if fate == "at once":
            self.server.write(attempt)
        elif fate == "late":
            self._arbiter.loop.call_later(
                self._arbiter.chosen.random() * LATE_SECONDS,
                self.server.write,
                attempt,
                context=self._arbiter.context,
            )

    async def _travel(self) -> None:
        if self._arbiter.is_away:
            await asyncio.sleep(0.05)
            raise StoreUnavailable("nobody answers")
        await super()._travel()
