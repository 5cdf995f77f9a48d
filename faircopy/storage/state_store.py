"""Ordered, transactional state in one LMDB environment: checkpoints, indexes, group offsets, cluster store.

Reads run where they are asked for, on the memory map. Writes run on one thread of their own, one transaction for each
call, durable when the call is done (LMDB's default durability; no WRITEMAP, no NOSYNC).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from faircopy.errors import FaircopyError
from faircopy.storage.disk import Disk

MAP_BYTES = 64 << 30  # address space, not memory or disk
KEY_BYTES_MAX = 511  # LMDB's bound
TABLES = (
    "checkpoints",
    "producers",
    "offset_index",
    "time_index",
    "spans",
    "group_offsets",
    "transactions",
    "transactional_ids",
    "cluster",
)


class StateStoreFailure(FaircopyError):
    """The state store could not be opened, read or written."""


class Put(NamedTuple):
    table: str
    key: bytes
    value: bytes


class Delete(NamedTuple):
    table: str
    key: bytes


class DeletePrefix(NamedTuple):
    table: str
    prefix: bytes


class DeleteRange(NamedTuple):
    """Delete keys from `first` (included) to `end` (not included)."""

    table: str
    first: bytes
    end: bytes


Change = Put | Delete | DeletePrefix | DeleteRange


def key_of_name(prefix: bytes, name: bytes) -> bytes:
    """A key for a name that a client chose: with its hash in place of a long one, so the value must hold the name."""
    key = prefix + name
    if len(key) <= KEY_BYTES_MAX and not name.startswith(b"\0"):
        return key
    return prefix + b"\0" + hashlib.sha256(name).digest()


class StateStore:
    """Tables of bytes to bytes, sorted by key."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._environment: Any = lmdb.open(
                str(path), map_size=MAP_BYTES, max_dbs=len(TABLES), subdir=True, max_spare_txns=4
            )
            self._tables = {name: self._environment.open_db(name.encode()) for name in TABLES}
        except lmdb.Error as error:
            raise StateStoreFailure(
                f"opening the state store {path}: {error}. If the directory was copied while a broker ran, copy it "
                f"again"
            ) from error
        self._writer = Disk(loop, threads=1)

    def get(self, table: str, key: bytes) -> bytes | None:
        with self._environment.begin(db=self._tables[table]) as transaction:
            value: bytes | None = transaction.get(key)
            return value

    def scan(self, table: str, prefix: bytes, first: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys begin with `prefix`, in order, from key `first` on."""
        with self._environment.begin(db=self._tables[table]) as transaction, transaction.cursor() as cursor:
            found = cursor.set_range(first if first is not None else prefix)
            while found and cursor.key().startswith(prefix):
                yield cursor.item()
                found = cursor.next()

    def floor(self, table: str, prefix: bytes, key: bytes) -> tuple[bytes, bytes] | None:
        """The entry with the greatest key that is at most `key` and begins with `prefix`."""
        with self._environment.begin(db=self._tables[table]) as transaction, transaction.cursor() as cursor:
            found = cursor.set_range(key)
            if not (found and cursor.key() == key):
                found = cursor.prev() if found else cursor.last()
            return cursor.item() if found and cursor.key().startswith(prefix) else None

    async def write(self, changes: Iterable[Change]) -> None:
        """Make all changes in one durable transaction."""
        await self._writer.run(self._write, lambda: changes)

    async def write_checked(self, decide: Callable[[], Iterable[Change]]) -> None:
        """Make the changes that `decide` returns. It runs with no other write under way, and may raise to write
        nothing.
        """
        await self._writer.run(self._write, decide)

    def _write(self, decide: Callable[[], Iterable[Change]]) -> None:
        changes = decide()
        try:
            with self._environment.begin(write=True) as transaction:
                for change in changes:
                    self._apply(transaction, change)
        except lmdb.Error as error:
            raise StateStoreFailure(f"writing to the state store {self._environment.path()}: {error}") from error

    def _apply(self, transaction: Any, change: Change) -> None:
        database = self._tables[change.table]
        match change:
            case Put():
                transaction.put(change.key, change.value, db=database)
            case Delete():
                transaction.delete(change.key, db=database)
            case DeletePrefix():
                delete_while(transaction, database, change.prefix, lambda key: key.startswith(change.prefix))
            case DeleteRange():
                delete_while(transaction, database, change.first, lambda key: key < change.end)

    def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(lmdb.Error):
            self._environment.close()


def delete_while(transaction: Any, database: Any, first: bytes, wanted: Callable[[bytes], bool]) -> None:
    """Delete entries from key `first` on, as long as `wanted(key)`."""
    with transaction.cursor(db=database) as cursor:
        found = cursor.set_range(first)
        while found and wanted(cursor.key()):
            found = cursor.delete()
            found = bool(cursor.key())
