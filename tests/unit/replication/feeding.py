"""A leader's journals in virtual time, a feeder of them, and a follower that says what a test lets it say."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from faircopy.arbiter.record import SetRecord
from faircopy.journal.entry import Entry, Kind
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.replication.feeder import Feeder
from faircopy.replication.led import Led
from faircopy.replication.link import Link
from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    Comparison,
    Data,
    MarkedJournal,
    Marks,
    Message,
)
from faircopy.replication.timing import Timing
from faircopy.storage.system import mount
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.threads import SimulatedThreads
from tests.unit.replication.linked import EPOCH, FOLLOWER, LEADER, run_linked

SEGMENT_BYTES = 300_000
P, Q = b"p" * 20, b"q" * 20
DATA = Path("/data")
TIMING = Timing()
RECORD = SetRecord("set", (1, 2), *LEADER, EPOCH, {LEADER.broker: LEADER.incarnation})


class Leader:
    """Journals that are led, and the feeder of one link. `heard`: what the feeder was told of."""

    def __init__(self, link: Link) -> None:
        self.loop = asyncio.get_running_loop()
        self.threads = SimulatedThreads(self.loop, 2, random.Random(1))
        self.led = Led(LEADER, RECORD)
        self.heard: list[bytes] = []
        self._link = link
        self.feeder: Feeder
        self.ended: asyncio.Future[None] = self.loop.create_future()

    async def open(self, identity: bytes, start: int = 0) -> Journal:
        """Open a journal, or make it."""
        options = JournalOptions(
            Durability.FSYNC,
            SEGMENT_BYTES,
            iter(range(1, 99)).__next__,
            lambda error: None,
            on_moved=self._moved,
            is_replicated=True,
        )
        journal = Journal(DATA / identity.decode(), identity, self.threads, self.loop, options, EPOCH)
        await self.threads.run(journal.open_raw, start)
        self.led.open(journal)
        return journal

    def _moved(self, identity: bytes) -> None:
        if hasattr(self, "feeder"):
            self.feeder.note_moved(identity)

    def feed(self, first: bytes | None = None) -> None:
        """Begin to feed the follower. `ended` is why that ends."""
        self.led.join(FOLLOWER)
        self._link.trust()
        self.feeder = Feeder(
            self._link, FOLLOWER, self.led, self.threads, TIMING, self._marks, self._hear, first
        )
        self.ended = asyncio.ensure_future(self.feeder.run())

    async def stop(self) -> None:
        """Feed no longer."""
        self.ended.cancel()
        await asyncio.gather(self.ended, return_exceptions=True)

    def _marks(self, journals: tuple[MarkedJournal, ...]) -> Marks:
        return Marks(int(self.loop.time() * 1000), EPOCH, {LEADER.broker: LEADER.incarnation}, journals)

    def _hear(self, identities: Iterable[bytes]) -> None:
        self.heard += identities
        for identity in identities:
            self.feeder.note_acked(identity)


class Script:
    """The follower's end of the link."""

    def __init__(self, link: Link) -> None:
        link.trust()
        self._link = link

    async def next(self) -> Message:
        """What the leader says next, but for heartbeats."""
        while (message := await self._link.receive()) and isinstance(message, Marks) and not message.journals:
            pass
        return message

    async def compared(self) -> Comparison:
        message = await self.next()
        assert isinstance(message, Comparison)
        return message

    async def data(self) -> Data:
        message = await self.next()
        assert isinstance(message, Data)
        return message

    async def marks(self) -> dict[bytes, int]:
        message = await self.next()
        assert isinstance(message, Marks)
        return dict(message.journals)

    def say(self, message: Message) -> None:
        self._link.send(message)

    def align(self, identity: bytes, end: int = 0, mark: int = 0) -> None:
        self.say(Alignment((AlignedJournal(identity, end, end, mark),), is_last=True))

    def ack(self, identity: bytes, written: int, synced: int) -> None:
        self.say(Acks((AckedJournal(identity, written, synced),), is_short=False))


def itself(entry: Entry) -> Entry:
    """Stands in for a fold."""
    return entry


def append(journal: Journal, size: int) -> Entry:
    """Append an entry of so many bytes of payload."""
    return journal.append(Kind.PLAIN, random.Random(size).randbytes(size), fold=itself, records=1)


def run_feeding(test: Callable[[Leader, Script], Awaitable[None]]) -> None:
    """Run a test with a leader that has no journals yet."""

    async def main(near: Link, far: Link) -> None:
        leader = Leader(near)
        try:
            await test(leader, Script(far))
        finally:
            await leader.stop()

    disk = LyingDisk(lambda: 0)
    disk.make_directory(DATA)
    disk.sync_directory(DATA.parent)
    with mount(disk):
        run_linked(main)
