"""A snapshot of the data directory at one moment, for `faircopy backup` to copy while the broker serves.

faircopy-data/snapshot/          there while a backup copies it
  lock                           held by the backup; the broker removes a snapshot that nobody holds
  unclaimed                      there until the backup holds the lock; it has a minute to take it
  files.json                     which files belong to it, and how many bytes of each
  journal/  log/  format.json    hard links: nothing that is deleted meanwhile is lost
  state.lmdb/                    a copy

It consists of the state store as it is between two checkpoints, each journal up to its tail at one tick of
the loop, and each log up to the end of its checkpoint. A start from it folds the journals and writes the rest
of the logs, as after a crash at that tick. A commit appends all its entries in one tick, so each transaction
is in the snapshot whole or not at all. Plain tables are built again from the logs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from faircopy.copier.checkpoint import decode_checkpoint
from faircopy.errors import FaircopyError
from faircopy.hosting.administration import TopicAdministration
from faircopy.hosting.checkpoints import Checkpoints
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.journal.journal import Journal
from faircopy.journal.segment import HEADER_BYTES
from faircopy.partition.hosted import HostedPartition
from faircopy.storage.clock import Clock
from faircopy.storage.data_directory import FORMAT_FILE, DataDirectory
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import StorageFailure
from faircopy.storage.paths import (
    delete_file,
    delete_tree,
    exists,
    link_file,
    list_directory,
    make_directory,
    size_of,
    write_file,
)
from faircopy.storage.state_store import StateStore
from faircopy.storage.system import mounted

DIRECTORY = "snapshot"
FILES = "files.json"
LOCK = "lock"
UNCLAIMED = "unclaimed"
CLAIM_MS = 60_000
SYNCS_AT_ONCE = 64
PARTITIONS_PER_TURN = 256


class NoSnapshot(FaircopyError):
    """No snapshot can be made now. Nothing was changed."""


def another_backup() -> NoSnapshot:
    """The error if there is a backup already."""
    return NoSnapshot("another backup is being made: wait until it ends")


class MadeSnapshot(NamedTuple):
    """A snapshot as it is given to a backup, which removes it by its `id`."""

    id: str
    directory: Path


class SnapshotFile(NamedTuple):
    """A file of a snapshot: its first `size` bytes, or all (None). A sealed file never changes again."""

    path: Path
    size: int | None
    is_sealed: bool


class SnapshotSource(Protocol):
    """The parts of a broker that a snapshot is made from."""

    administration: TopicAdministration
    hosted: HostedTopics
    checkpoints: Checkpoints
    cluster_id: str
    directory: DataDirectory
    disk: DiskPool
    store: StateStore

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    def is_whole(self) -> bool:
        """Whether everything has a leader."""

    def journals(self) -> list[Journal]:
        """All journals of the broker."""


class Snapshots:
    """The snapshot of a broker. There is at most one at a time."""

    def __init__(self, source: SnapshotSource) -> None:
        self._source = source
        self._root = source.directory.path
        self._directory = self._root / DIRECTORY
        self._id = secrets.token_hex(8)
        self._claimable_until_ms = 0.0
        self._is_at_work = asyncio.Lock()

    async def make(self) -> MadeSnapshot:
        """Make a snapshot, which the caller must claim within a minute. Until then nobody else gets one.

        Raises NoSnapshot, JournalFull, StorageFailure.

        Meanwhile there are no checkpoints, and no topic is created or deleted. That lasts about as long as
        copying the state store and linking the files.
        """
        self._ensure_sound()
        if self._is_at_work.locked():
            raise another_backup()
        async with self._is_at_work:
            if not await self._remove_if_free():
                raise another_backup()
            async with self._source.checkpoints.held(), self._source.administration.unchanged():
                self._ensure_sound()  # again, since a shard may have been closed meanwhile
                try:
                    await self._make()
                except BaseException:
                    await self._source.disk.run(delete_quickly, self._directory)
                    raise
            self._id = secrets.token_hex(8)
            self._claimable_until_ms = self._source.clock.monotonic_ms() + CLAIM_MS
            return MadeSnapshot(self._id, self._directory)

    async def remove(self, snapshot_id: str | None) -> None:
        """Remove the snapshot with this id, because its backup is done. Nothing happens if it is gone."""
        async with self._is_at_work:
            if snapshot_id == self._id:
                await self._source.disk.run(delete_quickly, self._directory)

    async def remove_abandoned(self) -> None:
        """Remove the snapshot of a backup that ended without saying so."""
        async with self._is_at_work:
            await self._remove_if_free()

    async def _remove_if_free(self) -> bool:
        """Remove any snapshot that no backup holds or may still claim. Returns whether there is none now."""
        is_claimable = self._source.clock.monotonic_ms() < self._claimable_until_ms
        return await self._source.disk.run(remove_free, self._directory, is_claimable)

    def _ensure_sound(self) -> None:
        if not self._source.is_whole():
            raise NoSnapshot("a shard has no leader now, and a backup must be complete: try again")
        stopped = [str(each.name) for each in self._source.hosted.partitions() if each.failure is not None]
        if stopped:
            raise NoSnapshot(
                f"partition {stopped[0]} is stopped ({len(stopped)} in all), and a backup must be complete: "
                f"repair or delete what is damaged, as the broker's log says"
            )

    # -- making ----------------------------------------------------------------------------------------------

    async def _make(self) -> None:
        source = self._source
        await source.disk.run(prepare, self._directory)
        logs = [file async for file in self._logs()]
        await source.disk.run(self._link, logs)
        state = self._directory / source.directory.state.name
        await source.store.copy_to(state)
        journals, files = source.journals(), []
        for journal in journals:  # in one tick: nothing is awaited
            files += list(journal_files(journal))
        for first in range(0, len(journals), SYNCS_AT_ONCE):
            await asyncio.gather(*(journal.sync() for journal in journals[first : first + SYNCS_AT_ONCE]))
        format_file = SnapshotFile(self._root / FORMAT_FILE, None, is_sealed=False)
        await source.disk.run(self._link, [*files, format_file])
        await source.disk.run(self._write_list, [*logs, *files])

    async def _logs(self) -> AsyncIterator[SnapshotFile]:
        """The files of all logs, each up to the end of its checkpoint."""
        for number, partition in enumerate(self._source.hosted.partitions()):
            if number % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
            for file in self._log_files(partition):
                yield file

    def _log_files(self, partition: HostedPartition) -> Iterator[SnapshotFile]:
        value = self._source.store.get("checkpoints", partition.identity)
        checkpoint = decode_checkpoint(value) if value is not None else None
        if checkpoint is None or checkpoint.log_segment_base is None:
            return
        for segment in partition.log.kept_segments():
            if segment.base_offset < checkpoint.log_segment_base:
                yield SnapshotFile(segment.path, segment.size, is_sealed=True)
            elif segment.base_offset == checkpoint.log_segment_base:
                yield SnapshotFile(segment.path, checkpoint.log_byte, is_sealed=False)

    def _link(self, files: list[SnapshotFile]) -> None:
        made: set[Path] = set()
        for file in files:
            link = self._directory / file.path.relative_to(self._root)
            if link.parent not in made:
                make_directory(link.parent, durable=False)
                made.add(link.parent)
            link_file(file.path, link)

    def _write_list(self, found: list[SnapshotFile]) -> None:
        listed = {str(file.path.relative_to(self._root)): [file.size, file.is_sealed] for file in found}
        for path in (Path(FORMAT_FILE), Path(self._source.directory.state.name) / "data.mdb"):
            listed[str(path)] = [None, False]
        files = {
            path: [size_of(self._directory / path) if size is None else size, sealed]
            for path, (size, sealed) in listed.items()
            if exists(self._directory / path)
        }
        document = {"cluster": self._source.cluster_id, "files": files}
        write_file(self._directory / FILES, json.dumps(document).encode())


def journal_files(journal: Journal) -> Iterator[SnapshotFile]:
    """The segments of a journal, the last one up to the journal's tail."""
    segments = journal.segments
    for segment in segments[:-1]:
        yield SnapshotFile(segment.path, None, is_sealed=True)
    for segment in segments[-1:]:
        size = HEADER_BYTES + journal.watermarks.appended - segment.base
        yield SnapshotFile(segment.path, size, is_sealed=False)


def prepare(directory: Path) -> None:
    """Create an empty snapshot. Blocks."""
    make_directory(directory)
    for name in (LOCK, UNCLAIMED):
        mounted().close(mounted().lock(directory / name))


def claim(directory: Path) -> int:
    """Hold a snapshot until the descriptor that this returns is closed. For the backup's process.

    Raises OSError, and BlockingIOError if the broker is just removing it.
    """
    lock = mounted().lock_shared(directory / LOCK)
    with contextlib.suppress(StorageFailure):  # on a file system that is read-only here
        delete_file(directory / UNCLAIMED)
    return lock


def delete_quickly(directory: Path) -> None:
    """Delete a snapshot. The deletion need not be durable. Blocks."""
    delete_tree(directory, durable=False)


def remove_free(directory: Path, is_claimable: bool) -> bool:
    """Remove a snapshot if nobody holds it, and nobody may still claim it. Returns whether there is none now.
    Blocks.
    """
    if not list_directory(directory):
        return True
    if is_claimable and exists(directory / UNCLAIMED):
        return False  # a try of the lock could be in the way of the backup that is about to claim it
    try:
        lock = mounted().lock(directory / LOCK)
    except BlockingIOError:
        return False
    try:
        delete_quickly(directory)
    finally:
        mounted().close(lock)
    return True
