"""The catalogue's journal: a small map that all brokers of a set share, and that is the fold of a journal.

checkpoints    "C" 0           -> see `journal.checkpoint`
catalogue      key in UTF-8    -> version u64 big-endian, value

There are two views of the map. Writes are decided by what is appended: two of them never rest on the same
version. What others read is what is durable: nothing that a topic's files, an answer or a number rests on is
ever taken back.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from pathlib import Path

from faircopy.catalogue.change import CatalogueChange, decode_change, encode_change
from faircopy.errors import DoesNotFold
from faircopy.journal.checkpoint import (
    JournalCheckpoint,
    decode_journal_checkpoint,
    encode_journal_checkpoint,
)
from faircopy.journal.entry import Entry, Kind
from faircopy.journal.identity import CATALOGUE_TOPIC_ID, TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import Recovered
from faircopy.loop.waiting import tell
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import Change, Delete, Put, StateStore
from faircopy.storage.versioned_map import Conflict, SortedEntries, Versioned

CATALOGUE_DIRECTORY = "_catalogue"
CATALOGUE_IDENTITY = TopicIdPartition(CATALOGUE_TOPIC_ID, 0).identity
TABLE = "catalogue"
_VERSION = struct.Struct(">Q")


class CatalogueJournal:
    """The catalogue: a VersionedMap whose versions are the positions of entries."""

    def __init__(self, journal: Journal, store: StateStore, disk: DiskPool) -> None:
        self.journal = journal
        self._store = store
        self._disk = disk
        self._appended = SortedEntries()
        self._durable = SortedEntries()
        self._changed: set[str] = set()
        self._checkpoint = JournalCheckpoint()
        self._checkpointing = False

    @classmethod
    def of(
        cls,
        journals: Path,
        store: StateStore,
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        options: JournalOptions,
        leader_epoch: int,
    ) -> CatalogueJournal:
        """The catalogue of a broker, whose journals are in `journals` and share `options`.

        It is always fsynced. Otherwise a loss of power would take back what is seldom written and much rests
        on: a topic whose files stay, or producer ids, which would be given out twice.
        """
        synced, directory = options._replace(durability=Durability.FSYNC), catalogue_directory(journals)
        return cls(Journal(directory, CATALOGUE_IDENTITY, disk, loop, synced, leader_epoch), store, disk)

    # -- reading ---------------------------------------------------------------------------------------------

    def get(self, key: str) -> Versioned | None:
        return self._durable.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        return self._durable.scan(prefix)

    # -- writing ---------------------------------------------------------------------------------------------

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> int:
        """See VersionedMap. A caller that no longer waits cancels nothing. Raises Conflict, JournalFull.

        Entries are small, and some make room, so they may be written from the reserve of a full disk. Who
        takes space for more than an entry looks for it first.
        """
        try:
            self._appended.ensure_versions(expected)
        except Conflict:
            await self.journal.durable()
            raise
        self.journal.ensure_replicas()
        self.journal.ensure_reserve()
        change = CatalogueChange(dict(expected), dict(changes))
        version = self.journal.append(
            Kind.CHANGE, encode_change(change), fold=lambda entry: self._fold(entry, change)
        )
        is_durable = asyncio.get_running_loop().create_future()
        self.journal.when_durable(lambda: self._show(change, version, is_durable))
        await is_durable
        return version

    def _fold(self, entry: Entry, change: CatalogueChange) -> int:
        self._appended.apply(change.changes, entry.position)
        self._changed |= change.changes.keys()
        return entry.position

    def _show(self, change: CatalogueChange, version: int, waiting: asyncio.Future[None]) -> None:
        self._durable.apply(change.changes, version)
        tell(waiting)

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open it, in the steps of `partition.opening`. Blocks. Raises DamagedJournal, StorageFailure."""
        self._load()
        opening = self.journal.open(*self._checkpoint)
        for recovered in opening.entries():
            try:
                self._fold_found(recovered)
            except Exception as error:
                opening.refuse(recovered.entry, error)
        opening.judge_end()
        self.journal.ensure_leads(opening)
        self.journal.accept(opening)
        self._durable = self._appended.copy()  # what is read is durable

    def _load(self) -> None:
        """Restore the map of the last checkpoint."""
        value = self._store.get("checkpoints", CATALOGUE_IDENTITY)
        if value is not None:
            self._checkpoint = decode_journal_checkpoint(value)
            self._appended = checkpointed(self._store)

    def _fold_found(self, recovered: Recovered) -> None:
        self._fold(recovered.entry, change_in(recovered, self._appended))

    # -- checkpoints -----------------------------------------------------------------------------------------

    @property
    def bytes_since_checkpoint(self) -> int:
        return self.journal.watermarks.appended - self._checkpoint.position

    async def checkpoint(self) -> None:
        """Store the map as of now (I6), and free journal space."""
        if self._checkpointing or not self.bytes_since_checkpoint:
            return
        self._checkpointing = True
        try:
            position = self.journal.watermarks.appended
            checkpoint = JournalCheckpoint(position, self.journal.epochs_below(position))
            changed, self._changed = self._changed, set()
            rows = [self._row(key) for key in changed]
            rows.append(Put("checkpoints", CATALOGUE_IDENTITY, encode_journal_checkpoint(checkpoint)))
            try:
                await self.journal.sync()
                await self._store.write(rows)
            except BaseException:
                self._changed |= changed
                raise
            self._checkpoint = checkpoint
            for segment in self.journal.reclaim(position):
                await self._disk.run(segment.discard)
        finally:
            self._checkpointing = False

    def _row(self, key: str) -> Change:
        found = self._appended.get(key)
        if found is None:
            return Delete(TABLE, key.encode())
        return Put(TABLE, key.encode(), _VERSION.pack(found.version) + found.value)


def checkpointed(store: StateStore) -> SortedEntries:
    """The map of the last checkpoint."""
    found = SortedEntries()
    for key, stored in store.scan(TABLE, b""):
        version: int = _VERSION.unpack_from(stored)[0]
        found.apply({key.decode(): stored[_VERSION.size :]}, version)
    return found


def change_in(recovered: Recovered, entries: SortedEntries) -> CatalogueChange:
    """The write of an entry, for the map that those before it have made. Raises DoesNotFold, and what
    `decode_change` does.
    """
    if recovered.entry.kind != Kind.CHANGE:
        raise ValueError(f"an entry of kind {recovered.entry.kind}")
    change = decode_change(recovered.payload)
    try:
        entries.ensure_versions(change.rests_on)
    except Conflict as error:
        raise DoesNotFold(str(error)) from error
    return change


def catalogue_directory(journals: Path) -> Path:
    """The directory of the catalogue's journal, among those of all journals."""
    return journals / CATALOGUE_DIRECTORY / "0"
