"""One process's session with the arbiter: a copy of it in memory, a lease, and writes whose outcome is
known (docs/CLUSTER.md, The store).

A write to a store over a network may get no answer, and land much later. So each write of a session also
writes the session's own key, and depends on its version. When a write is not answered, the session writes its
key alone. If that succeeds, the first write has not landed and never will, as it depends on a version that is
gone; if it is refused, the key tells which write was last. So the writes of a session are one after the
other, and each has succeeded or failed (A7). The key is bound to the lease, so every write depends on it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from faircopy.arbiter.backend import (
    NO_LEASE,
    Attempt,
    Backend,
    ChangesForgotten,
    KeyChange,
    LeaseLeft,
    StoreUnavailable,
    Unanswered,
)
from faircopy.arbiter.lease import Lease
from faircopy.arbiter.store_copy import Changed, StoreCopy
from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned

log = logging.getLogger(__name__)

PREFIX = "sessions/"
RETRY_SECONDS = 0.1
OPEN_SECONDS = 30.0
"""How long a session that begins waits for the store."""


class LeaseLost(FaircopyError):
    """The session's lease has expired, so the session is over. Whether its last write has landed is only for
    another session to see; it will not land later.
    """


class Session:
    """A session. `name` is used by no other one, ever. `uptime_ms` is a clock that does not stop in suspend.

    `on_lost` is called once if the lease has expired, `on_renewal` whenever it was renewed, and `on_silence`
    whenever it was to be renewed and the store did not answer.
    """

    def __init__(
        self, backend: Backend, name: str, lease_seconds: float, uptime_ms: Callable[[], float]
    ) -> None:
        self.on_lost: Callable[[], None] = lambda: None
        self.on_renewal: Callable[[], None] = lambda: None
        self.on_silence: Callable[[], None] = lambda: None
        self.trouble = ""
        """Why it has not begun yet, as far as that is known."""
        self._backend = backend
        self._key = PREFIX + name
        self._lease_seconds = lease_seconds
        self._uptime_ms = uptime_ms
        self._lease = Lease(NO_LEASE, 0.0, 0.0)  # in doubt
        self._copy = StoreCopy()
        self._version = ABSENT
        self._tokens = itertools.count(1)
        self._writing = asyncio.Lock()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._interested: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- its life --------------------------------------------------------------------------------------------

    async def open(self, patience_seconds: float = OPEN_SECONDS) -> None:
        """Copy the store, and take a lease. Raises StoreUnavailable if the store is away for longer."""
        given_up_ms = self._uptime_ms() + patience_seconds * 1000
        # A member of etcd may be away, or all of them may be about to start, as this process is.
        while not await self._has_begun(given_up_ms):
            await asyncio.sleep(RETRY_SECONDS)
        self._start(self._follow())
        self._start(self._keep_lease())
        await self.transact({}, {})

    async def _has_begun(self, given_up_ms: float) -> bool:
        """Begin, unless the store is away. Raises StoreUnavailable if it is for long."""
        try:
            await self._begin()
        except StoreUnavailable as error:
            self.trouble = str(error)
            if self._uptime_ms() > given_up_ms:
                raise
            return False
        return True

    async def _begin(self) -> None:
        """Copy the store, and take a lease. Raises StoreUnavailable."""
        self._copy.take(await self._backend.snapshot())
        asked_ms = self._uptime_ms()
        self._lease = Lease(await self._backend.grant(self._lease_seconds), self._lease_seconds, asked_ms)

    async def close(self) -> None:
        """Give the lease back: what is bound to it goes at once, if the store can be reached."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(StoreUnavailable):
            await self._backend.revoke(self._lease.number)
        self._end()
        await self._backend.close()

    @property
    def is_in_doubt(self) -> bool:
        """Whether the lease may have expired: then nothing may be answered that depends on it (B1)."""
        return self._lease.is_in_doubt(self._uptime_ms())

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.critical("the session with the arbiter ends: %s", error, exc_info=error)
            self._lose()

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The revision of the copy."""
        return self._copy.revision

    def get(self, key: str) -> Versioned | None:
        """The value of a key in the copy, or None."""
        return self._copy.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix in the copy, in order."""
        return self._copy.scan(prefix)

    def watch(self, prefix: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` whenever a key with this prefix changes in the copy. Returns what ends that."""
        return self._copy.watch(prefix, changed)

    async def lease_left(self, key: str) -> LeaseLeft | None:
        """What is left of the lease that a key is bound to; None if it has none, or the store is away."""
        try:
            return await self._backend.lease_seconds_left(key)
        except StoreUnavailable:
            return None

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until this holds, as far as the copy tells. Raises LeaseLost."""
        changed = asyncio.Event()
        self._interested.add(changed)
        try:
            while not is_so():
                if self._lease.is_lost:
                    raise self._lost()
                await changed.wait()
                changed.clear()
        finally:
            self._interested.discard(changed)

    async def until_after(self, revision: int) -> None:
        """Wait until the copy is newer than this. Raises LeaseLost."""
        await self.until(lambda: self._copy.revision > revision)

    async def fence(self) -> None:
        """Wait until the copy is not older than this call, also while the store is away. Raises LeaseLost."""
        # A write, not a read: the revision of a store that others use as well may be one of theirs, to which
        # the copy never comes.
        await self.transact({}, {})

    # -- writing ---------------------------------------------------------------------------------------------

    async def transact(
        self,
        expected: Mapping[str, int],
        changes: Mapping[str, bytes | None],
        bound: Iterable[str] = (),
    ) -> int:
        """Write all `changes` (None deletes) if every key in `expected` has its version. Keys in `bound` go
        with the lease. Returns the revision, which the copy has reached.

        Waits for as long as the outcome is unknown, or the store is away. A caller that no longer waits
        cancels nothing: the write is carried out or not. Raises Conflict, LeaseLost.
        """
        task = asyncio.ensure_future(self._transact(expected, changes, frozenset(bound)))
        task.add_done_callback(ignore)
        return await asyncio.shield(task)

    async def _transact(
        self, expected: Mapping[str, int], changes: Mapping[str, bytes | None], bound: frozenset[str]
    ) -> int:
        try:
            async with self._writing:
                revision = None
                while revision is None:
                    revision = await self._attempt(expected, changes, bound)
                self._version = revision
        except Conflict:
            await self.fence()  # whoever reads again finds what was in the way
            raise
        await self._reach(revision)
        return revision

    async def _attempt(
        self, expected: Mapping[str, int], changes: Mapping[str, bytes | None], bound: frozenset[str]
    ) -> int | None:
        """The revision of the write, or None if it has not landed, never will, and may be tried again."""
        token = self._token()
        attempt = self._with_key(expected, changes, bound, token)
        try:
            revision = await self._backend.attempt(attempt)
        except StoreUnavailable:
            await self._pause()
            return None
        except Unanswered:
            return await self._settle(token)
        if revision is None:
            await self._refused(expected)
        return revision

    def _with_key(
        self,
        expected: Mapping[str, int],
        changes: Mapping[str, bytes | None],
        bound: frozenset[str],
        token: bytes,
    ) -> Attempt:
        return Attempt(
            {**expected, self._key: self._version},
            {**changes, self._key: token},
            bound | {self._key},
            self._lease.number,
        )

    def _token(self) -> bytes:
        return str(next(self._tokens)).encode()

    async def _settle(self, token: bytes) -> int | None:
        """Find out about a write that was not answered: its revision if it has landed, else None."""
        while True:
            await self._pause()
            is_refused = False
            with contextlib.suppress(StoreUnavailable, Unanswered):
                superseding = self._with_key({}, {}, frozenset(), self._token())
                revision = await self._backend.attempt(superseding)
                if revision is not None:
                    self._version = revision
                    return None
                is_refused = True
            found = await self._read_key()
            if found is None:
                if is_refused or self._version != ABSENT:
                    raise self._lost()
                continue  # the first write of the session has not landed yet
            if found.value == token:
                return found.version
            if found.version != self._version:  # one of those that superseded it, not answered either
                self._version = found.version
                return None

    async def _refused(self, expected: Mapping[str, int]) -> None:
        """Raise Conflict or LeaseLost: which of the versions was another one?"""
        found = await self._read_key()
        if found is None or found.version != self._version:
            raise self._lost()
        raise Conflict(f"one of {', '.join(expected)} was changed by somebody else")

    async def _read_key(self) -> Versioned | None:
        while True:
            try:
                return await self._backend.read(self._key)
            except StoreUnavailable:
                await self._pause()

    async def _pause(self) -> None:
        if self._lease.is_lost:
            raise self._lost()
        await asyncio.sleep(RETRY_SECONDS)

    # -- the lease -------------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        pause_seconds = self._lease.renewal_seconds
        while not self._lease.is_lost:
            await asyncio.sleep(pause_seconds)
            asked_ms = self._uptime_ms()
            try:
                async with asyncio.timeout(self._lease.renewal_seconds):
                    is_kept = await self._backend.keep_alive(self._lease.number)
            except (StoreUnavailable, TimeoutError):
                pause_seconds = RETRY_SECONDS
                self.on_silence()
                continue
            pause_seconds = self._lease.renewal_seconds
            if not is_kept:
                self._lose()
            else:
                self._lease.renewed(asked_ms)
                self.on_renewal()

    def _lost(self) -> LeaseLost:
        self._lose()
        return LeaseLost("the lease of this process has expired at the arbiter: it has to register again")

    def _lose(self) -> None:
        if not self._lease.is_lost:
            self._end()
            self.on_lost()

    def _end(self) -> None:
        self._lease.is_lost = True
        self._rouse()
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(self._lost())

    # -- the copy --------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                async for events in self._backend.changes(self._copy.revision):
                    self._copy.apply(events)
                    self._look_for_end(events)
                    self._wake()
            except ChangesForgotten:
                with contextlib.suppress(StoreUnavailable):
                    self._copy.take(await self._backend.snapshot())
                    self._wake()
            except StoreUnavailable:
                pass
            await asyncio.sleep(RETRY_SECONDS)

    def _look_for_end(self, events: Iterable[KeyChange]) -> None:
        """The session's key goes with its lease. That may end early: a member of etcd that has led, was
        stopped, and goes on, may end leases that others have renewed (etcd's issue 15247).
        """
        if any(event.key == self._key and event.value is None for event in events):
            self._lose()

    async def _reach(self, revision: int) -> None:
        """Wait until the copy has come to this revision."""
        if self._copy.revision >= revision:
            return
        if self._lease.is_lost:
            raise self._lost()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, waiting))
        await waiting

    def _rouse(self) -> None:
        for changed in self._interested:
            changed.set()

    def _wake(self) -> None:
        self._rouse()
        reached = [each for each in self._waiting if each[0] <= self._copy.revision]
        self._waiting = [each for each in self._waiting if each[0] > self._copy.revision]
        for _, waiting in reached:
            if not waiting.done():
                waiting.set_result(None)


def ignore(task: asyncio.Task[int]) -> None:
    """Nobody may be waiting for a task any more: its error is no news."""
    if not task.cancelled():
        task.exception()
