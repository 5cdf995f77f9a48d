"""A process's membership of its replica set: from its session with the arbiter to its leadership, and to the
loss of it.

    begin          there is a session, and what it knows is not older than that
    until_turn     nobody leads the set, as far as the arbiter knows: now the directory may be locked
    join           the directory's next life is in the record, and registered
    lead           this life is elected, in an epoch of its own; a follower never is
    settle         nothing that was acknowledged before this epoch can be lost any more, unless it was told
    is_in_doubt    the lease may have expired: nothing may be answered
    lost           it has expired: this process must end, or replace itself

See docs/REPLICA_SETS.md.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from faircopy.arbiter.backend import Backend
from faircopy.arbiter.controller import Controller
from faircopy.arbiter.directory_note import Directory
from faircopy.arbiter.joining import Applicant, is_follower
from faircopy.arbiter.record import Grade, SetRecord, encode
from faircopy.arbiter.registration import (
    BROKERS,
    RECORD,
    Registered,
    Registration,
    StoreNote,
    UnreadableEntry,
    record_in,
    registered_in,
    version_of,
)
from faircopy.arbiter.session import LeaseLost, Session
from faircopy.arbiter.set_status import status_of
from faircopy.storage.clock import MachineClock
from faircopy.storage.versioned_map import Conflict

log = logging.getLogger(__name__)

WAITING_SECONDS = 1.0
"""A start says what it waits for if it takes longer."""


class Elected(NamedTuple):
    """This life leads: in this epoch, and with this much of what was acknowledged before."""

    epoch: int
    grade: Grade


class Membership:
    """The membership of broker `who`, which lives until its lease is lost, or it is closed."""

    def __init__(
        self,
        backend: Backend,
        who: Applicant,
        lease_seconds: float,
        clock: MachineClock,
        fresh_token: Callable[[], str],
    ) -> None:
        self.who = who
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_sure: Callable[[], None] = lambda: None
        """Called whenever the lease is not, or no longer, in doubt."""
        self._clock = clock
        self._fresh_token = fresh_token
        name = f"{who.broker}.{fresh_token()}"
        self._session = Session(backend, name, lease_seconds, clock.uptime_ms)
        self._session.on_lost = self._lease_lost
        self._session.on_renewal = self._renewed
        self._session.on_silence = self._silent
        self._has_session = False
        self._said_unreadable = False
        self._incarnation = 0
        self._in_doubt_since_ms: float | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # -- to its leadership -----------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin a session, or see what is new. Waits for the arbiter, however long that takes. Raises
        StoreRefused, LeaseLost.
        """
        if not self._has_session:
            await self._unless_slow(self._session.open(math.inf), self._silence)
            self._has_session = True
        await self._session.fence()

    @property
    def follows(self) -> bool:
        """Whether this broker only follows, by the record that is known."""
        record = self._record()
        return record is not None and is_follower(self.who.broker, record)

    async def until_turn(self) -> None:
        """Wait until nobody leads the set, and no former life of this broker is registered. May be called
        again. Raises StoreRefused, LeaseLost.
        """
        await self.begin()
        await self._unless_slow(self._session.until(self._is_free), self._leader)

    def _silence(self) -> str:
        """What a start waits for, and why."""
        why = f" ({trouble})" if (trouble := self._session.trouble) else ""
        return f"the arbiter does not answer{why}: this start waits for it"

    def _is_free(self) -> bool:
        """Whether no earlier life of this broker is registered, nor the leader if this one may lead."""
        record = self._record()
        busy = {self.who.broker}
        if record is not None and not self.follows:
            busy.add(record.leader)
        return not busy & set(self._registered())

    def _leader(self) -> str:
        """What a standby waits for."""
        there = [f"broker {each} at {found.address}" for each, found in self._registered().items()]
        return (
            f"replica set {self.who.set_name} is served by {', '.join(there)}: this process waits until its "
            f"lease is gone"
        )

    async def _unless_slow(self, work: Coroutine[Any, Any, None], what: Callable[[], str]) -> None:
        """Do this, and say what it waits for if it takes long."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=WAITING_SECONDS)
            if not done:
                log.warning("%s", what())
            await task
        finally:
            task.cancel()

    async def join(
        self, directory: Directory, store_note: StoreNote, address: str, host: str, link: str = ""
    ) -> None:
        """Begin a life with a directory that is locked. Raises RegistrationRefused, LeaseLost."""
        registration = Registration(self._session, self.who, directory, store_note, self._fresh_token)
        self._incarnation = (await registration.register(address, host, link)).last
        self._start(Controller(self._session, self.who.broker, self._clock.wall_ms).run())

    async def registered(self, broker: int) -> Registered:
        """Wait until a broker of the set is registered. Raises LeaseLost."""
        await self._session.until(lambda: broker in self._registered())
        return self._registered()[broker]

    async def lead(self) -> Elected:
        """Wait until this life is elected. Raises LeaseLost."""
        await self._session.until(self._is_leader)
        record = self.record
        self._start(self._lead_no_more())
        return Elected(record.epoch, record.grade())

    async def _lead_no_more(self) -> None:
        """If the record names another leader, or another life, this one must end. A record that can't be read
        names nobody.
        """
        await self._session.until(self._names_another)
        log.error("the record of replica set %s says that this broker does not lead", self.who.set_name)
        self._lose()

    def _names_another(self) -> bool:
        try:
            return not self._is_leader()
        except UnreadableEntry as error:
            if not self._said_unreadable:
                log.error("%s. This broker goes on leading", error)
            self._said_unreadable = True
            return False

    def _is_leader(self) -> bool:
        record = self._record()
        return (
            record is not None
            and (record.leader, record.leader_incarnation) == (self.who.broker, self._incarnation)
        )  # fmt: skip

    async def settle(self) -> None:
        """Note that what was open is settled: this leader lacks no drafts from now on. Raises LeaseLost."""
        while True:
            found = self._session.get(RECORD)
            record = self.record
            if not self._is_leader():
                raise LeaseLost(f"broker {self.who.broker} does not lead its replica set any more")
            if record.leader in record.drafts:
                return
            try:
                await self._session.transact({RECORD: version_of(found)}, {RECORD: encode(record.settle())})
            except Conflict:
                continue

    @property
    def life(self) -> int:
        """The number of this life; 0 before the broker has joined."""
        return self._incarnation

    @property
    def known_record(self) -> SetRecord | None:
        """The newest record that is known, if any."""
        return self._record()

    @property
    def record(self) -> SetRecord:
        """The newest record that is known. There is one once the broker has joined."""
        record = self._record()
        assert record is not None
        return record

    def _record(self) -> SetRecord | None:
        return record_in(self._session.get(RECORD))

    def _registered(self) -> dict[int, Registered]:
        return registered_in(self._session.scan(BROKERS))

    async def status(self) -> dict[str, Any]:
        """The state of the set, for people."""
        brokers = self._session.scan(BROKERS)
        leases = {int(key.removeprefix(BROKERS)): await self._session.lease_left(key) for key in brokers}
        return status_of(self.who.set_name, self._session.scan(""), leases)

    # -- its lease -------------------------------------------------------------------------------------------

    @property
    def is_in_doubt(self) -> bool:
        """Whether the lease may have expired: then nothing may be answered (B1)."""
        return self.lost.done() or self._session.is_in_doubt

    @property
    def _has_joined(self) -> bool:
        return self._incarnation > 0

    def _silent(self) -> None:
        if not self.is_in_doubt or self._in_doubt_since_ms is not None:
            return
        self._in_doubt_since_ms = self._clock.monotonic_ms()
        if self._has_joined:
            log.error(
                "the arbiter does not answer, and the lease may have expired: all answers are held until it "
                "is renewed"
            )
        else:
            log.warning("the arbiter does not answer: this process, which waits for its turn, waits for it")

    def _renewed(self) -> None:
        if self.is_in_doubt:
            return
        if self._in_doubt_since_ms is not None:
            silent_seconds = (self._clock.monotonic_ms() - self._in_doubt_since_ms) / 1000
            self._in_doubt_since_ms = None
            if self._has_joined:
                log.warning("the lease is renewed: answers were held for %.1f s", silent_seconds)
            else:
                log.warning("the arbiter answers again: this process waits for its turn")
        self.on_sure()

    def _lease_lost(self) -> None:
        log.error("broker %d has lost its lease at the arbiter", self.who.broker)
        self._lose()

    def _lose(self) -> None:
        if not self.lost.done():
            self.lost.set_result(None)

    # -- its end ---------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, LeaseLost):
            log.critical("the membership of the replica set ends: %s", error, exc_info=error)
        self._lose()

    async def close(self) -> None:
        """Give the lease back: somebody else may lead at once. The directory must be unlocked."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()
