"""Ordered, transactional state in one LMDB environment: checkpoints, indexes, group offsets, the catalogue.

Reads run on the calling thread, on the memory map. Writes run on one thread of their own. A call returns when
its transaction is durable (LMDB's default durability; no WRITEMAP, no NOSYNC); calls that wait together share
one.

Values are stored with a checksum (`storage.sealed`), and each read checks it. Each transaction also writes
its own number (the *stamp*) beside the tables, so that an older state is not mistaken for the newest if one
of LMDB's heads is damaged (`storage.store_check`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from faircopy.errors import FaircopyError
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace, StorageFailure, WriteFailure
from faircopy.storage.file import File
from faircopy.storage.paths import make_directory, sync_directory
from faircopy.storage.sealed import CRC_BYTES, DamagedRecord, DamagedState, is_sound, seal
from faircopy.storage.store_check import (
    FILE,
    MAP_BYTES,
    STAMP,
    Contradiction,
    RecordKey,
    encode_stamp,
    ensure_newest,
    find_damaged,
)
from faircopy.storage.system import PRIVATE_FILE

KEY_BYTES_MAX = 511  # LMDB's limit
SPARE_BYTES = 512 << 10  # for the parents of the pages that change, and the list of free pages
TABLES = (
    "checkpoints",
    "producers",
    "offset_index",
    "spans",
    "log_segments",
    "group_offsets",
    "groups",
    "transactions",
    "transactional_ids",
    "catalogue",
    "local",
)

DAMAGE = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.NotFoundError,  # of a table
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)
"""What LMDB raises when its file is damaged, if it finds that."""


class StateStoreFailure(FaircopyError):
    """The state store could not be opened, read or written."""


class Put(NamedTuple):
    """Store a value under a key; an existing value is replaced."""

    table: str
    key: bytes
    value: bytes


class Delete(NamedTuple):
    """Remove a key, which may be missing."""

    table: str
    key: bytes


class DeletePrefix(NamedTuple):
    """Remove all keys that begin with `prefix`."""

    table: str
    prefix: bytes


class DeleteRange(NamedTuple):
    """Remove keys from `first` (included) to `end` (not included)."""

    table: str
    first: bytes
    end: bytes


Change = Put | Delete | DeletePrefix | DeleteRange


def key_of_name(prefix: bytes, name: bytes) -> bytes:
    """A key for a name that a client chose. Long names are hashed, so the value must hold the name."""
    key = prefix + name
    if len(key) <= KEY_BYTES_MAX and not name.startswith(b"\0"):
        return key
    return prefix + b"\0" + hashlib.sha256(name).digest()


class Waiting(NamedTuple):
    """Changes that wait to be written, and the future of the caller that waits for them."""

    decide: Callable[[], Iterable[Change]]
    done: asyncio.Future[None]
    is_checked: bool

    def tell(self, error: BaseException | None) -> None:
        """Tell the caller that the changes are durable, or the error if they were not written."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class StateStore:
    """Tables of bytes to bytes, sorted by key.

    `on_write_failure` is called when a write fails for a reason other than space, and must end the process
    (I10). `on_no_space` is called when there is no space, and returns whether to try again. `damaged` has the
    records that did not match their checksums when the store was opened; reading one raises DamagedState.
    """

    on_write_failure: Callable[[WriteFailure], None] = staticmethod(lambda error: None)
    on_no_space: Callable[[NoSpace], bool] = staticmethod(lambda error: False)
    damaged: Sequence[RecordKey] = ()
    _writer: DiskPool | None = None
    _is_writing = False

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, tables: Sequence[str] = TABLES) -> None:
        """Open the store in directory `path`, or create it. Reads all records. Raises StateStoreFailure,
        DamagedState.
        """
        self._path = path
        self._table_names = tables
        self._waiting: deque[Waiting] = deque()
        try:
            self._environment: Any = lmdb.open(
                str(path),
                map_size=MAP_BYTES,
                max_dbs=len(tables),
                subdir=True,
                max_spare_txns=4,
                mode=PRIVATE_FILE,
            )
        except lmdb.Error as error:
            raise failure_of("opening", path, error) from error
        # LMDB fsyncs its file, but not the file's name: a power failure could lose the name, and all topics.
        sync_directory(path)
        self._file = File(path / FILE)
        try:
            self._tables = self._open_tables()
            with self._environment.begin() as transaction:
                self.damaged = list(find_damaged(transaction, self._tables))
        except (lmdb.Error, Contradiction) as error:
            self._environment.close()
            raise failure_of("opening", path, error) from error
        self._writer = DiskPool(loop, threads=1)

    @classmethod
    def open_to_read(cls, path: Path) -> StateStore:
        """Open an existing store whose pages are sound (`verify/state.py`) and that nobody writes to; no file
        is changed. Raises StateStoreFailure, DamagedState.
        """
        store = cls.__new__(cls)
        store._path = path
        try:
            store._environment = lmdb.open(
                str(path), readonly=True, lock=False, create=False, max_dbs=len(TABLES)
            )
            store._tables = {name: store._environment.open_db(name.encode(), create=False) for name in TABLES}
        except lmdb.Error as error:
            raise failure_of("opening", path, error) from error
        return store

    def _open_tables(self) -> dict[str, Any]:
        # In one transaction: there is no state without all tables and the stamp.
        with self._environment.begin(write=True) as transaction:
            is_new = transaction.id() == 1
            if not is_new:
                ensure_newest(transaction, self._file.read, self._environment.stat()["psize"])
            tables = {
                name: self._environment.open_db(name.encode(), txn=transaction, create=is_new)
                for name in self._table_names
            }
            if is_new:
                transaction.put(STAMP, encode_stamp(transaction.id()))
        return tables

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value of a key, or None. Raises DamagedState, like all methods that read."""
        try:
            with self._environment.begin(db=self._tables[table]) as transaction:
                sealed: bytes | None = transaction.get(key)
        except DAMAGE as error:
            raise self._unreadable(table, error) from error
        return None if sealed is None else self._unsealed(table, key, sealed)[1]

    def scan(self, table: str, prefix: bytes, first: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys begin with `prefix`, in order, from key `first` on."""
        database = self._tables[table]
        try:
            with self._environment.begin(db=database) as transaction, transaction.cursor() as cursor:
                if not cursor.set_range(first if first is not None else prefix):
                    return
                for key, sealed in cursor.iternext():
                    if not key.startswith(prefix):
                        return
                    yield self._unsealed(table, key, sealed)
        except DAMAGE as error:
            raise self._unreadable(table, error) from error

    def floor(self, table: str, prefix: bytes, key: bytes) -> tuple[bytes, bytes] | None:
        """The entry with the greatest key that is at most `key` and begins with `prefix`."""
        database = self._tables[table]
        try:
            with self._environment.begin(db=database) as transaction, transaction.cursor() as cursor:
                found = cursor.set_range(key)
                if not (found and cursor.key() == key):
                    found = cursor.prev() if found else cursor.last()
                item: tuple[bytes, bytes] | None = cursor.item() if found else None
        except DAMAGE as error:
            raise self._unreadable(table, error) from error
        return self._unsealed(table, *item) if item is not None and item[0].startswith(prefix) else None

    def _unsealed(self, table: str, key: bytes, sealed: bytes) -> tuple[bytes, bytes]:
        if not is_sound(table.encode(), key, sealed):
            raise DamagedRecord(self._path / FILE, table, key)
        return key, sealed[CRC_BYTES:]

    def _unreadable(self, table: str, error: lmdb.Error) -> DamagedState:
        return DamagedState(self._path / FILE, f"reading table {table}: {error}")

    def ensure_sound(self, prefix: bytes) -> None:
        """Raise DamagedState if a record whose key begins with `prefix` was found damaged at the start."""
        for record in self.damaged:
            if record.key.startswith(prefix):
                raise DamagedRecord(self._path / FILE, *record)

    def forget_dead_readers(self) -> None:
        """Free what other processes that were killed have left in LMDB's table of readers."""
        try:
            self._environment.reader_check()
        except lmdb.Error as error:
            raise failure_of("checking the readers of", self._path, error) from error

    async def write(self, changes: Iterable[Change]) -> None:
        """Make all changes in one durable transaction, which may include changes of concurrent calls.

        Raises NoSpace.
        """
        listed = list(changes)
        await self._queue(Waiting(lambda: listed, self._new_future(), is_checked=False))

    async def write_checked(self, decide: Callable[[], Iterable[Change]]) -> None:
        """Make the changes that `decide` returns. No other write is in progress while it runs, of any
        process; it may raise in order to write nothing. On a full disk it runs twice. Raises NoSpace.
        """
        await self._queue(Waiting(decide, self._new_future(), is_checked=True))

    def _new_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    async def _queue(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._start_writing()
        await waiting.done

    def _start_writing(self) -> None:
        """Write one transaction at a time; calls that arrive meanwhile share the next one and its fsync."""
        writer = self._writer
        assert writer is not None, "a store that is opened to read is not written"
        if self._is_writing or not self._waiting:
            return
        self._is_writing = True
        together = [self._waiting.popleft()]
        while self._waiting and not (together[0].is_checked or self._waiting[0].is_checked):
            together.append(self._waiting.popleft())

        decisions = [each.decide for each in together]

        def first_done(_result: object, error: BaseException | None) -> None:
            if isinstance(error, NoSpace) and self.on_no_space(error):
                writer.submit(self._write, (decisions,), done)
            else:
                done(None, error)

        def done(_result: object, error: BaseException | None) -> None:
            self._is_writing = False
            if isinstance(error, WriteFailure):
                self.on_write_failure(error)
            for each in together:
                each.tell(error)
            self._start_writing()

        writer.submit(self._write, (decisions,), first_done)

    def _write(self, decisions: Sequence[Callable[[], Iterable[Change]]]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                changes = [change for decide in decisions for change in decide()]
                self._have_space_for(changes)
                for change in changes:
                    self._apply(transaction, change)
                transaction.put(STAMP, encode_stamp(transaction.id()))
        except lmdb.DiskError as error:
            raise NoSpace(f"writing to the state store {self._path}: {error}: free some space") from error
        except lmdb.MapFullError as error:
            raise StateStoreFailure(f"writing to the state store {self._path}: {error}") from error
        except lmdb.Error as error:
            raise WriteFailure(str(failure_of("writing to", self._path, error))) from error

    def _have_space_for(self, changes: Sequence[Change]) -> None:
        """Reserve disk space before LMDB writes: LMDB reports a short write on a full disk as a disk error.
        Raises NoSpace, and nothing is written.
        """
        used = (self._environment.info()["last_pgno"] + 1) * self._environment.stat()["psize"]
        wanted = used + SPARE_BYTES + sum(map(room_for, changes))
        if wanted > self._file.size():
            self._file.preallocate(wanted + SPARE_BYTES)

    def _apply(self, transaction: Any, change: Change) -> None:
        database = self._tables[change.table]
        match change:
            case Put():
                sealed = seal(change.table.encode(), change.key, change.value)
                transaction.put(change.key, sealed, db=database)
            case Delete():
                transaction.delete(change.key, db=database)
            case DeletePrefix():
                delete_while(transaction, database, change.prefix, lambda key: key.startswith(change.prefix))
            case DeleteRange():
                delete_while(transaction, database, change.first, lambda key: key < change.end)

    async def copy_to(self, directory: Path) -> None:
        """Copy the store, as it is between two writes, to a new directory. Raises NoSpace, StorageFailure."""
        assert self._writer is not None, "a store that is opened to read is not copied"
        await self._writer.run(self._copy, directory)

    def _copy(self, directory: Path) -> None:
        make_directory(directory)
        try:
            self._environment.copy(str(directory))
        except lmdb.DiskError as error:
            raise NoSpace(f"copying the state store to {directory}: {error}: free some space") from error
        except lmdb.Error as error:
            raise StorageFailure(f"copying the state store to {directory}: {error}") from error

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        with contextlib.suppress(lmdb.Error):
            self._environment.close()


def room_for(change: Change) -> int:
    """Roughly how many bytes of new pages a change needs; those of one transaction are mostly close."""
    return 1024 + (2 * len(change.value) if isinstance(change, Put) else 0)


def failure_of(doing: str, path: Path, error: lmdb.Error | Contradiction) -> FaircopyError:
    """The error to raise for one of LMDB's: its file is damaged, or something else is wrong."""
    if isinstance(error, (*DAMAGE, Contradiction)):
        return DamagedState(path / FILE, f"{doing} it: {error}")
    return StateStoreFailure(f"{doing} the state store {path}: {error}")


def delete_while(transaction: Any, database: Any, first: bytes, wanted: Callable[[bytes], bool]) -> None:
    """Delete entries from key `first` on, as long as `wanted(key)`."""
    with transaction.cursor(db=database) as cursor:
        found = cursor.set_range(first)
        while found and wanted(cursor.key()):
            found = cursor.delete()
            found = bool(cursor.key())
