"""The arbiter of the processes of one machine: an LMDB environment that they share.

    table cluster    key in UTF-8                        revision u64, lease u64, value
          changes    revision u64, key in UTF-8          nothing; one row for each key, of its last change
          leases     lease u64                           name of its process's file
          numbers    revision | forgotten | lease        u64

All integers are big-endian. Each process holds a lock on a file of its own, `processes/<name>`, which the
kernel releases when the process has ended. So there is no clock in a lease, and whoever finds the lock free
ends it (B14).
Changes of other processes are found by looking at the revision again and again. (LMDB's number of the last
transaction would be cheaper, but it grows a moment before readers see that transaction.)
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

from faircopy.arbiter.backend import (
    NO_LEASE,
    Attempt,
    ChangesForgotten,
    KeyChange,
    LeaseLeft,
    StoreSnapshot,
    StoreUnavailable,
)
from faircopy.errors import FaircopyError
from faircopy.storage.failures import NoSpace
from faircopy.storage.paths import delete_file, make_directory
from faircopy.storage.state_store import Change, Delete, DeleteRange, Put, StateStore
from faircopy.storage.system import mounted
from faircopy.storage.versioned_map import ABSENT, Versioned

TABLES = ("cluster", "changes", "leases", "numbers")
POLL_SECONDS = 0.02
SWEEP_SECONDS = 0.1
CHANGES_KEPT = 10_000
"""Whoever is further behind takes a snapshot."""
_NUMBER = struct.Struct(">Q")
_HEADER = struct.Struct(">QQ")  # revision, lease


class _Refused(FaircopyError):
    """A version is another one than expected."""


class LmdbBackend:
    """One process's way to the store in `directory`."""

    def __init__(self, directory: Path, name: str, loop: asyncio.AbstractEventLoop) -> None:
        """Open the store, or create it. `name` is for a file name, and no other process has it, ever. Blocks.
        Raises StateStoreFailure, DamagedState.
        """
        self._processes = directory / "processes"
        make_directory(directory)
        make_directory(self._processes)
        self._name = name
        # It comes before any lease that names it.
        self._lock = mounted().lock(self._processes / name)
        path = directory / "store"
        make_directory(path)
        self._store = StateStore(path, loop, TABLES)
        self._store.forget_dead_readers()
        self._written = asyncio.Event()
        self._next_sweep = 0.0
        self._loop = loop

    # -- reading ---------------------------------------------------------------------------------------------

    async def snapshot(self) -> StoreSnapshot:
        """All keys, as they are now: without those of processes that have ended, whoever looks first."""
        await self._sweep()
        while True:
            revision = self._number("revision")
            entries = {key: entry for key, (entry, _) in self._entries()}
            if self._number("revision") == revision:
                return StoreSnapshot(revision, entries)

    async def read(self, key: str) -> Versioned | None:
        """A key, as it is now."""
        return self._entry(key)

    async def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        """All changes after a revision. Those of several revisions come together, as they are by now."""
        while True:
            await self._sweep()
            if self._number("revision") > revision:
                events = self._events_after(revision)
                revision = events[-1].revision
                yield events
            self._written.clear()
            again = self._loop.call_later(POLL_SECONDS, self._written.set)
            await self._written.wait()
            again.cancel()

    def _events_after(self, revision: int) -> list[KeyChange]:
        """Raises ChangesForgotten."""
        while True:
            now = self._number("revision")
            if self._number("forgotten") > revision:
                raise ChangesForgotten(f"the changes after revision {revision} are forgotten")
            events = list(self._changed(revision))
            if self._number("revision") == now:
                return events

    def _changed(self, revision: int) -> Iterator[KeyChange]:
        for row, _ in self._store.scan("changes", b"", _NUMBER.pack(revision + 1)):
            key = row[_NUMBER.size :].decode()
            entry = self._entry(key)
            yield KeyChange(key, entry.value if entry else None, _NUMBER.unpack_from(row)[0])

    def _number(self, name: str) -> int:
        found = self._store.get("numbers", name.encode())
        return int(_NUMBER.unpack(found)[0]) if found is not None else 0

    def _entry(self, key: str) -> Versioned | None:
        found = self._store.get("cluster", key.encode())
        return decode(found)[0] if found is not None else None

    def _entries(self) -> Iterator[tuple[str, tuple[Versioned, int]]]:
        for key, value in self._store.scan("cluster", b""):
            yield key.decode(), decode(value)

    # -- writing ---------------------------------------------------------------------------------------------

    async def attempt(self, attempt: Attempt) -> int | None:
        """Write, durably. The outcome is always known. Raises StoreUnavailable if the disk is full."""
        revision = 0

        def decide() -> list[Change]:
            nonlocal revision
            self._ensure(attempt)
            revision = self._number("revision") + 1
            return self._changes_of(attempt, revision)

        try:
            await self._write(decide)
        except _Refused:
            return None
        return revision

    async def _write(self, decide: Callable[[], list[Change]]) -> None:
        try:
            await self._store.write_checked(decide)
        except NoSpace as error:
            raise StoreUnavailable(str(error)) from error
        self._written.set()  # this process need not wait for the next look

    def _ensure(self, attempt: Attempt) -> None:
        for key, version in attempt.expected.items():
            entry = self._entry(key)
            if (entry.version if entry else ABSENT) != version:
                raise _Refused(key)
        if attempt.lease != NO_LEASE and self._store.get("leases", _NUMBER.pack(attempt.lease)) is None:
            raise _Refused(f"lease {attempt.lease}")

    def _changes_of(self, attempt: Attempt, revision: int) -> list[Change]:
        rows: list[Change] = [put_number("revision", revision)]
        for key, value in attempt.changes.items():
            entry = self._entry(key)
            name = key.encode()
            if entry is not None:
                rows.append(Delete("changes", _NUMBER.pack(entry.version) + name))
            rows.append(Put("changes", _NUMBER.pack(revision) + name, b""))
            if value is None:
                rows.append(Delete("cluster", name))
            else:
                lease = attempt.lease if key in attempt.bound else NO_LEASE
                rows.append(Put("cluster", name, _HEADER.pack(revision, lease) + value))
        if revision % (CHANGES_KEPT // 10) == 0:
            rows += forget(revision - CHANGES_KEPT)
        return rows

    # -- leases ----------------------------------------------------------------------------------------------

    async def grant(self, seconds: float) -> int:
        """A lease that ends with the process, whatever `seconds` says. Raises StoreUnavailable."""
        lease = 0

        def decide() -> list[Change]:
            nonlocal lease
            lease = self._number("lease") + 1
            return [put_number("lease", lease), Put("leases", _NUMBER.pack(lease), self._name.encode())]

        await self._write(decide)
        return lease

    async def keep_alive(self, lease: int) -> bool:
        """Whether the lease is still there: nobody ends it while this process runs."""
        return self._store.get("leases", _NUMBER.pack(lease)) is not None

    async def revoke(self, lease: int) -> None:
        """End a lease: delete it, and the keys that are bound to it. Raises StoreUnavailable."""

        def decide() -> list[Change]:
            name = _NUMBER.pack(lease)
            if self._store.get("leases", name) is None:
                return []
            gone = {key: None for key, (_, bound_to) in self._entries() if bound_to == lease}
            rows: list[Change] = [Delete("leases", name)]
            if gone:
                rows += self._changes_of(Attempt({}, gone), self._number("revision") + 1)
            return rows

        await self._write(decide)

    async def lease_seconds_left(self, key: str) -> LeaseLeft | None:
        """A lease ends with its process, and not before."""
        found = self._store.get("cluster", key.encode())
        if found is None or decode(found)[1] == NO_LEASE:
            return None
        return LeaseLeft(math.inf, math.inf)

    async def _sweep(self) -> None:
        """End the leases of processes that have ended."""
        if self._loop.time() < self._next_sweep:
            return
        self._next_sweep = self._loop.time() + SWEEP_SECONDS
        for lease, name in list(self._store.scan("leases", b"")):
            path = self._processes / name.decode()
            if name.decode() == self._name or not is_free(path):
                continue
            with contextlib.suppress(StoreUnavailable):  # on a full disk, later
                await self.revoke(int(_NUMBER.unpack(lease)[0]))
                delete_file(path)
                self._store.forget_dead_readers()

    async def close(self) -> None:
        """Close the store, and let go of the lock."""
        self._store.close()
        mounted().close(self._lock)
        delete_file(self._processes / self._name)


def decode(value: bytes) -> tuple[Versioned, int]:
    """A stored value, its version, and the lease that it is bound to."""
    revision, lease = _HEADER.unpack_from(value)
    return Versioned(value[_HEADER.size :], revision), lease


def put_number(name: str, number: int) -> Put:
    """Store one of the numbers."""
    return Put("numbers", name.encode(), _NUMBER.pack(number))


def forget(revision: int) -> list[Change]:
    """Forget the changes up to a revision."""
    if revision <= 0:
        return []
    return [DeleteRange("changes", b"", _NUMBER.pack(revision + 1)), put_number("forgotten", revision)]


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock on a file, which may be gone."""
    try:
        mounted().close(mounted().lock_shared(path))
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    return True
