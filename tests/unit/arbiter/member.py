"""Members of a replica set whose arbiter is in memory, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import cast

from faircopy.arbiter.backend import Attempt, StoreUnavailable
from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import Applicant
from faircopy.arbiter.membership import Membership
from faircopy.arbiter.record import Grade, SetRecord, decode, encode
from faircopy.arbiter.registration import RECORD
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import VirtualClock

SET = "orders"
LEASE_SECONDS = 3.0
ADDRESS = "here:9092"


class Way(MemoryBackend):
    """A member's way to the arbiter. While `is_away`, nobody answers. Each renewal is answered
    `answer_seconds` after it; `renewal_asked` is when the last one was asked for that was carried out.
    """

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(server, random.Random(1), Troubles())
        self.is_away = False
        self.answer_seconds = 0.0
        self.renewal_asked = 0.0
        self.attempts = 0
        self.before_attempt: Callable[[Attempt], None] = lambda attempt: None

    async def attempt(self, attempt: Attempt) -> int | None:
        self.attempts += 1
        self.before_attempt(attempt)
        return await super().attempt(attempt)

    async def keep_alive(self, lease: int) -> bool:
        asked = asyncio.get_running_loop().time()
        is_kept = await super().keep_alive(lease)
        if is_kept:
            self.renewal_asked = asked
        await asyncio.sleep(self.answer_seconds)
        return is_kept

    async def _travel(self) -> None:
        if self.is_away:
            raise StoreUnavailable("nobody answers")
        await super()._travel()


class Member:
    """A broker of the set, without journals."""

    tokens = itertools.count(1)

    def __init__(self, server: MemoryServer, broker: int = 1, replicas: tuple[int, ...] = ()) -> None:
        self.server = server
        self.way = Way(server)
        self.note = DirectoryNote()
        loop = cast(VirtualLoop, asyncio.get_running_loop())
        who = Applicant(SET, broker, "/data", True, replicas)
        self.membership = Membership(self.way, who, LEASE_SECONDS, VirtualClock(loop), self._token)

    def _token(self) -> str:
        return str(next(self.tokens))

    async def _store_note(self, note: DirectoryNote) -> None:
        self.note = note

    async def join(self, grade: Grade = Grade.DRAFTS, link: str = "") -> None:
        """Come to the point from which it can be elected."""
        await self.membership.until_turn()
        is_empty = self.membership.follows and not self.note.is_member
        directory = Directory(self.note, is_empty, epoch=7, grade=grade)
        await self.membership.join(directory, self._store_note, ADDRESS, "machine", link)

    def end(self) -> None:
        """Its lease ends."""
        self.server.expire(self.way.leases[-1])


async def leader(server: MemoryServer, grade: Grade = Grade.DRAFTS) -> Member:
    """A broker that leads the set."""
    member = Member(server)
    await member.join(grade)
    await member.membership.lead()
    return member


def record_of(server: MemoryServer) -> SetRecord:
    """The record."""
    return decode(server.entries[RECORD].value)


def write_record(server: MemoryServer, record: SetRecord) -> None:
    """Somebody changes the record."""
    assert server.write(Attempt({}, {RECORD: encode(record)}))
