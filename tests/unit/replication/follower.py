"""A follower's process, on the disk of a machine that may lose power, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import read_entries
from faircopy.replication.messages import AckedJournal, AlignedJournal
from faircopy.replication.replica import Replica
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.system import mount
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.threads import SimulatedThreads
from tests.unit.replication.leaders_journal import LeadersJournal, P, Q, R

SEGMENT_BYTES = 8 << 10
KNOWN = (P, Q, R)
DIRECTORY = Path("/journals")


class UnknownJournal(FaircopyError):
    """The follower has no such journal."""


class Follower:
    """`opened` are the journals that the replica has asked for, `moves` how often it said that something has
    moved.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        disk: LyingDisk,
        chosen: random.Random,
        durability: Durability = Durability.FSYNC,
    ) -> None:
        self.loop = loop
        self.disk = disk
        self.threads = SimulatedThreads(loop, 8, chosen)
        self.failures: list[BaseException] = []
        self.options = JournalOptions(
            durability,
            SEGMENT_BYTES,
            lambda: chosen.getrandbits(64),
            self.failures.append,
            space=SpaceWatch(),  # not the one that all tests share
            on_moved=self._note_moved,
            is_replicated=True,
        )
        self.known = set(KNOWN)
        self.opened: list[bytes] = []
        self.journals: dict[bytes, Journal] = {}
        self.moves = 0
        self.on_moved: Callable[[], None] = lambda: None
        self.replica = Replica(self._open, self._moved)

    async def _open(self, identity: bytes) -> Journal:
        self.opened.append(identity)
        if identity not in self.known:
            raise UnknownJournal("this broker has no such topic")
        journal = Journal(DIRECTORY / identity.hex(), identity, self.threads, self.loop, self.options)
        await self.threads.run(journal.open_raw, 0)
        self.journals[identity] = journal
        return journal

    def _note_moved(self, identity: bytes) -> None:
        self.replica.note_moved(identity)

    def _moved(self) -> None:
        self.moves += 1
        self.on_moved()

    async def link(self, *journals: LeadersJournal) -> list[AlignedJournal]:
        """Begin a link with a leader that has these journals."""
        self.replica.begin_link()
        return [await self.replica.align(each.compared()) for each in journals]

    async def synced(self, identity: bytes) -> int:
        """The position up to which a journal is synced, once all of it is."""
        marks = self.journals[identity].watermarks
        while marks.synced < marks.appended:
            await self.tick()
        return marks.synced

    async def tick(self) -> None:
        """Let a moment pass."""
        await self.threads.run(int)

    def acked(self) -> dict[bytes, AckedJournal]:
        """What has moved."""
        return {each.identity: each for each in self.replica.take_moved()}


def new_disk() -> LyingDisk:
    disk = LyingDisk(lambda: 0)
    disk.make_directory(DIRECTORY)
    disk.sync_everything()
    return disk


def payloads_in(journal: Journal) -> list[bytes]:
    """All entries that are in a journal's files, by their payloads."""
    return [bytes(each.payload) for each in read_entries(journal.segments, 0)]


def run(
    scene: Callable[[Follower], Awaitable[None]],
    disk: LyingDisk | None = None,
    seed: int = 0,
    durability: Durability = Durability.FSYNC,
) -> LyingDisk:
    """Play a scene with a new process on a disk, and return the disk."""
    loop, machine = VirtualLoop(), disk or new_disk()

    async def play() -> None:
        follower = Follower(loop, machine, random.Random(seed), durability)
        await scene(follower)
        assert not follower.failures

    with mount(machine), closing(loop):
        loop.run(play())
    assert not loop.failures
    return machine
