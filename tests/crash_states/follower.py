"""A replica's directory, into which the entries of a leader's journals are copied one by one, and what the
journals of a directory fold into.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from faircopy.catalogue.journal import CATALOGUE_DIRECTORY, CatalogueJournal
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.groups.offsets_journals import OFFSETS_DIRECTORY, OffsetsPartition
from faircopy.journal.checkpoint import JournalCheckpoint, decode_journal_checkpoint
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import Recovered
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import PartitionResources, Unopened, assemble, recover
from faircopy.shard.shard import METADATA_DIRECTORY
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.epochs import greatest_epoch, note_incarnation
from faircopy.storage.file import File
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.paths import list_directory
from faircopy.storage.system import mount
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.verify.journal_files import open_journal, open_segment
from tests.crash_states.sweep import in_a_world
from tests.simulation.aftermath import Fate
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import Crash, LyingDisk, Operation
from tests.simulation.machine import DIRECTORY
from tests.simulation.store import Contents, SimulatedStore
from tests.simulation.threads import SimulatedThreads
from tests.unit.journal.copying import copy as append_copy

SEGMENT_BYTES = 900  # not as the leader's
SYNC_CHANCE = 0.3
A_LATER_EPOCH = 1 << 20


class Source(NamedTuple):
    """A journal of the leader, and its sound entries."""

    identity: bytes
    entries: list[Recovered]


def journals_on(disk: LyingDisk) -> dict[Path, Source]:
    """All journals in the data directory on a disk that have files."""
    with mount(disk):
        return {path: source_in(path) for path in journal_directories()}


def journal_directories() -> list[Path]:
    found = [path for topic in list_directory(DIRECTORY / "journal") for path in list_directory(topic)]
    return [path for path in found if list_directory(path)]


def source_in(path: Path) -> Source:
    files, findings = open_journal(path, identity_in(path), lambda _bytes: None)
    assert not findings
    entries = files.entries(files.start_position)
    return Source(identity_in(path), [Recovered(entry, memoryview(bytes(data))) for entry, data in entries])


def identity_in(path: Path) -> bytes:
    """The identity in the header of a journal's files."""
    first = min(child for child in list_directory(path) if child.suffix == ".journal")
    return open_segment(first).opened.read(44, 0)[24:]


class Follower:
    """A directory that began as a copy of the leader's. It belongs to no loop: each life has a world of its
    own.
    """

    def __init__(self, disk: LyingDisk, contents: Contents, chosen: random.Random) -> None:
        self.disk = disk.with_root(copy.deepcopy(disk.root))
        self.contents = copy.deepcopy(contents)
        self._chosen = chosen
        self._synced: dict[Path, int] = {}

    def live(
        self,
        source: dict[Path, Source],
        share: float = 1.0,
        crash_at: int | None = None,
        fate: Fate = Fate.KEPT,
    ) -> int:
        """Open the journals raw, and append this share of what they lack of the leader's. Lose power before
        the disk's operation of this number, or at the end. Returns the number of operations.
        """

        async def main(loop: VirtualLoop) -> None:
            life, crash = Life("follower"), loop.create_future()

            def before(operation: Operation) -> None:
                if operation.number == crash_at:
                    life.end()
                    crash.set_result(None)
                    raise Crash

            self.disk.before = before
            with mount(self.disk):
                work = loop.create_task(self._copy(loop, source, share), context=life.context)
                await asyncio.wait([work, crash], return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not isinstance(work.exception(), Crash):
                await work

        in_a_world(main)
        operations = self.disk.operations
        self.disk = self.disk.crash(fate, self._chosen)
        return operations

    async def _copy(self, loop: VirtualLoop, source: dict[Path, Source], share: float) -> None:
        opening = Opening(loop, self.contents, self._chosen)
        behind = []
        for path, (identity, entries) in source.items():
            journal = opening.journal(path, identity)
            journal.open_raw(*opening.checkpoint(identity))
            end = journal.watermarks.appended
            assert end >= self._synced.get(path, 0)
            behind.append((path, journal, [each for each in entries if each.entry.position >= end]))
        left = round(share * sum(len(entries) for _, _, entries in behind))
        while left and (lacking := [each for each in behind if each[2]]):
            path, journal, entries = self._chosen.choice(lacking)
            append_copy(journal, entries.pop(0))
            left -= 1
            if self._chosen.random() < SYNC_CHANCE:
                await journal.sync()
                self._synced[path] = journal.watermarks.synced
        for path, journal, _ in behind:
            await journal.sync()
            self._synced[path] = journal.watermarks.synced

    def lead_later(self) -> None:
        """Make the next broker on this directory lead under epochs that the leader has not had."""

        async def main(loop: VirtualLoop) -> None:
            notes = LocalNotes(Opening(loop, self.contents, self._chosen).store)
            await note_incarnation(notes, greatest_epoch(notes) + 1)

        in_a_world(main)


class Opening:
    """What it takes to open the journals of a directory on the mounted disk."""

    def __init__(
        self, loop: VirtualLoop, contents: Contents, chosen: random.Random, leader_epoch: int = A_LATER_EPOCH
    ) -> None:
        self._loop = loop
        self._leader_epoch = leader_epoch
        self._disk: DiskPool = SimulatedThreads(loop, 8, chosen)
        self.store = SimulatedStore(contents, loop, chosen, lambda: None)
        self._failures: list[BaseException] = []
        self._options = JournalOptions(
            Durability.FSYNC, SEGMENT_BYTES, lambda: chosen.getrandbits(64), self._failures.append
        )

    def journal(self, path: Path, identity: bytes) -> Journal:
        return Journal(path, identity, self._disk, self._loop, self._options, self._leader_epoch)

    def folds(self, journals: dict[Path, bytes], *, is_raw: bool) -> Iterator[tuple[str, Any]]:
        """What each of these journals folds into, named. They are opened raw first, or at once."""
        for path, identity in journals.items():
            name, number = str(path.relative_to(DIRECTORY / "journal")), int(path.name)
            journal = self.journal(path, identity)
            if path.parent.name == CATALOGUE_DIRECTORY:
                catalogue = CatalogueJournal(journal, self.store, self._disk)
                self._open(journal, identity, catalogue.open, is_raw=is_raw)
                yield name, dict(catalogue.scan(""))
            elif path.parent.name == METADATA_DIRECTORY:
                home = MetadataJournal(number, journal, self.store, self._disk)
                self._open(journal, identity, home.open, is_raw=is_raw)
                yield name, home.table
            elif path.parent.name == OFFSETS_DIRECTORY:
                table = GroupOffsets(identity, journal, self.store)
                offsets = OffsetsPartition(number, journal, table, self.store, self._disk)
                self._open(journal, identity, offsets.open, is_raw=is_raw)
                yield name, offsets.state
                yield f"{name}, committed", table._committed
                yield f"{name}, of open transactions", table._unstable
            else:
                log = DIRECTORY / "log" / path.relative_to(DIRECTORY / "journal")
                partition = assemble(self._unopened(path, log, identity), self._resources())
                journal = partition.journal
                self._open(journal, identity, partial(recover, partition), is_raw=is_raw)
                yield name, partition.state
                yield f"{name}, log", content_of(log)
            yield f"{name}, leader epochs", str(journal.epochs)
            yield f"{name}, end", journal.watermarks.appended

    def _open(self, journal: Journal, identity: bytes, fold: Callable[[], None], *, is_raw: bool) -> None:
        if is_raw:
            journal.open_raw(*self.checkpoint(identity))
        fold()

    def checkpoint(self, identity: bytes) -> JournalCheckpoint:
        return decode_journal_checkpoint(self.store.get("checkpoints", identity))

    def _unopened(self, path: Path, log: Path, identity: bytes) -> Unopened:
        own = TopicIdPartition(identity[:16], int.from_bytes(identity[16:], "big"))
        return Unopened(PartitionName("any", own.partition), own, path, log, 1 << 20, self._leader_epoch)

    def _resources(self) -> PartitionResources:
        return PartitionResources(
            self.store, self._disk, self._loop, lambda: 0, self._options, HostedPartition, self._damaged
        )

    def _damaged(self, _partition: HostedPartition, error: Exception) -> None:
        raise AssertionError(error)


def content_of(log: Path) -> bytes:
    """All batches of a log, whichever files they are in."""
    files = [File(path) for path in sorted(list_directory(log)) if path.suffix == ".log"]
    return b"".join(file.read(file.size(), 0) for file in files)


def folds_on(
    disk: LyingDisk,
    contents: Contents,
    journals: dict[Path, bytes],
    *,
    is_raw: bool,
    leader_epoch: int = A_LATER_EPOCH,
) -> dict[str, Any]:
    """What these journals in the data directory on a disk fold into, by name, for a leader of this epoch. The
    disk stays as it is.
    """

    async def main(loop: VirtualLoop) -> dict[str, Any]:
        opening = Opening(loop, copy.deepcopy(contents), random.Random(0), leader_epoch)
        with mount(disk.with_root(copy.deepcopy(disk.root))):
            return dict(opening.folds(journals, is_raw=is_raw))

    return in_a_world(main)
