"""An arbiter in memory, with clients to which anything may happen that happens over a network: answers
are lost, writes land late, nobody answers, leases expire, watches forget.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from faircopy.arbiter.backend import (
    NO_LEASE,
    Attempt,
    ChangesForgotten,
    KeyChange,
    LeaseLeft,
    StoreSnapshot,
    StoreUnavailable,
    Unanswered,
)
from faircopy.storage.versioned_map import ABSENT, Versioned


class MemoryServer:
    """The store itself. `history` has all events; those up to `forgotten` can't be asked for."""

    def __init__(self) -> None:
        self.revision = 0
        self.entries: dict[str, Versioned] = {}
        self.history: list[KeyChange] = []
        self.forgotten = 0
        self.landed: list[tuple[int, Attempt]] = []
        self._leases: dict[int, set[str]] = {}
        self._changed = asyncio.Event()
        self._last_lease = NO_LEASE

    def write(self, attempt: Attempt) -> int | None:
        """Carry out an attempt; None if a version is another one, or its lease is gone."""
        if attempt.lease != NO_LEASE and attempt.lease not in self._leases:
            return None
        for key, version in attempt.expected.items():
            if self.version(key) != version:
                return None
        self._change(attempt)
        self.landed.append((self.revision, attempt))
        for key in attempt.bound:
            self._leases[attempt.lease].add(key)
        return self.revision

    def version(self, key: str) -> int:
        """The version of a key; ABSENT if there is none."""
        return self.entries[key].version if key in self.entries else ABSENT

    def _change(self, attempt: Attempt) -> None:
        self.revision += 1
        for bound in self._leases.values():
            bound.difference_update(attempt.changes)
        for key, value in attempt.changes.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = Versioned(value, self.revision)
            self.history.append(KeyChange(key, value, self.revision))
        self._changed.set()
        self._changed = asyncio.Event()

    def grant(self) -> int:
        """A new lease, which does not expire by itself."""
        self._last_lease += 1
        self._leases[self._last_lease] = set()
        return self._last_lease

    def is_kept(self, lease: int) -> bool:
        """Whether a lease has not expired."""
        return lease in self._leases

    def is_bound(self, key: str) -> bool:
        """Whether a key goes with a lease."""
        return any(key in bound for bound in self._leases.values())

    def expire(self, lease: int) -> None:
        """A lease ends, and with it the keys that are bound to it."""
        bound = self._leases.pop(lease, set())
        there = {key: None for key in sorted(bound) if key in self.entries}
        if there:
            self._change(Attempt({}, there))

    async def events_after(self, revision: int) -> list[KeyChange]:
        """All events after a revision; waits until there are some."""
        while self.revision <= revision:
            await self._changed.wait()
        return [event for event in self.history if event.revision > revision]


@dataclass
class Troubles:
    """How often what goes wrong, of one."""

    unanswered: float = 0.0  # a write lands at once, or late, or never; its client does not hear
    unavailable: float = 0.0
    slow: float = 0.0
    forgets: float = 0.0


class MemoryBackend:
    """One client of the server."""

    def __init__(self, server: MemoryServer, chance: random.Random, troubles: Troubles) -> None:
        self.server = server
        self.leases: list[int] = []
        self._chance = chance
        self.troubles = troubles
        self._late: set[asyncio.Task[None]] = set()

    async def snapshot(self) -> StoreSnapshot:
        await self._travel()
        return StoreSnapshot(self.server.revision, dict(self.server.entries))

    async def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        while True:
            await self._travel()
            if self._happens(self.troubles.forgets):
                self.server.forgotten = self.server.revision
            if revision < self.server.forgotten:
                raise ChangesForgotten("too old")
            events = await self.server.events_after(revision)
            if events[0].revision <= self.server.forgotten:
                raise ChangesForgotten("too old")
            await self._travel()  # who can't be reached tells of no change either
            yield events
            revision = events[-1].revision

    async def read(self, key: str) -> Versioned | None:
        await self._travel()
        return self.server.entries.get(key)

    async def attempt(self, attempt: Attempt) -> int | None:
        await self._travel()
        if self._happens(self.troubles.unanswered):
            self._lose(attempt)
            raise Unanswered("no answer")
        revision = self.server.write(attempt)
        await asyncio.sleep(self._chance.random() / 100)
        return revision

    def _lose(self, attempt: Attempt) -> None:
        fate = self._chance.choice(("at once", "late", "never"))
        if fate == "at once":
            self.server.write(attempt)
        elif fate == "late":
            task = asyncio.ensure_future(self._land(attempt, self._chance.random()))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _land(self, attempt: Attempt, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.server.write(attempt)

    async def grant(self, seconds: float) -> int:
        await self._travel()
        self.leases.append(self.server.grant())
        return self.leases[-1]

    async def keep_alive(self, lease: int) -> bool:
        await self._travel()
        return self.server.is_kept(lease)

    async def revoke(self, lease: int) -> None:
        await self._travel()
        self.server.expire(lease)

    async def lease_seconds_left(self, key: str) -> LeaseLeft | None:
        await self._travel()
        return LeaseLeft(math.inf, math.inf) if self.server.is_bound(key) else None

    async def close(self) -> None:
        await asyncio.gather(*self._late)

    async def _travel(self) -> None:
        if self._happens(self.troubles.slow):
            await asyncio.sleep(self._chance.random())
        if self._happens(self.troubles.unavailable):
            raise StoreUnavailable("nobody answers")

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share
