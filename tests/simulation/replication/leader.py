"""The leader's process: it opens its journals raw, waits at the barrier, folds them, and appends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from faircopy.journal.checkpoint import JournalCheckpoint
from faircopy.journal.entry import Entry, Kind, TransactionId
from faircopy.journal.errors import JournalFull
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.replication.followers import Followers, Reachable
from faircopy.replication.led import Led
from faircopy.replication.life import Life as BrokerLife
from faircopy.storage.paths import delete_file
from tests.simulation.replication.copies import directory_of
from tests.simulation.replication.host import Host
from tests.simulation.replication.promises import Promises, content_of
from tests.simulation.replication.register import Register

SEGMENT_BYTES = 20_000
PAUSE_SECONDS = 0.02
SIZES = (0, 40, 200, 200, 200, 3_000, 40_000)
LARGE_BYTES, LARGE_CHANCE = 700_000, 0.004
WRITER = TransactionId(4, 2, 9)


class Disk(NamedTuple):
    """What the leader's directory has beside its journals."""

    checkpoints: dict[bytes, JournalCheckpoint]


class LeaderProcess:
    """One life of the leader."""

    def __init__(self, host: Host, register: Register, promises: Promises, disk: Disk) -> None:
        self._host = host
        self._register = register
        self._promises = promises
        self._stored = disk
        self._threads = host.threads()
        self._life = BrokerLife(host.number + 1, host.incarnation)
        self._record = register.elect(self._life)
        self._options = JournalOptions(
            Durability.FSYNC,
            SEGMENT_BYTES,
            lambda: host.chosen.getrandbits(64),
            self._fail,
            lost_power=host.has_lost_power,
            on_moved=lambda identity: self.followers.note_moved(identity),
            is_replicated=True,
        )
        self._journals: dict[bytes, Journal] = {}
        self._led = Led(self._life, self._record)
        self.followers: Followers
        self.serves = False
        self.falls_silent = False
        self.on_serving: Callable[[], None] = lambda: None
        self._checkpointing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until the life ends."""
        for identity in self._promises.journals:
            await self._open_raw(identity)
        self.followers = Followers(
            self._register.own(self._life, self._host.chosen),
            self._led,
            self._register.followers,
            self._reach,
            self._threads,
            lambda: int(self._host.loop.now * 1000),
            self._register.timing,
            self._host.loop,
        )
        for journal in self._journals.values():
            self.followers.lead(journal)
        await self.followers.barrier(list(self._journals.values()))
        for identity, journal in self._journals.items():
            await self._threads.run(self._fold, identity, journal)
        self._host.has_lost_power = False
        self.serves = True
        self.on_serving()
        await self._serve()

    async def _open_raw(self, identity: bytes) -> Journal:
        journal = Journal(
            directory_of(identity),
            identity,
            self._threads,
            self._host.loop,
            self._options,
            self._record.epoch,
        )
        await self._threads.run(journal.open_raw, *self._checkpoint(identity))
        self._journals[identity] = journal
        return journal

    def _checkpoint(self, identity: bytes) -> JournalCheckpoint:
        return self._stored.checkpoints.get(identity, JournalCheckpoint())

    async def _reach(self, broker: int) -> Reachable:
        while broker not in self._register.lives:
            await asyncio.sleep(self._register.timing.retry_seconds)
        host, to = self._host, broker - 1
        return Reachable(
            self._register.lives[broker], lambda protocol: host.switch.connect(host.number, to, protocol)
        )

    def _fail(self, error: BaseException) -> None:
        raise AssertionError("the disk has failed") from error

    def _fold(self, identity: bytes, journal: Journal) -> None:
        """Show all that is there: it was promised, then."""
        opening = journal.open(*self._checkpoint(identity))
        for _ in opening.entries():
            pass
        opening.judge_end()
        journal.ensure_leads(opening)
        journal.accept(opening)
        assert journal.watermarks.durable == opening.end == journal.watermarks.appended
        self._promises.make_durable(identity, opening.end)

    # -- serving ---------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        chosen = self._host.chosen
        while not self.falls_silent:
            await asyncio.sleep(chosen.random() * PAUSE_SECONDS)
            for _ in range(chosen.randint(0, 3)):
                self._append(chosen.choice(list(self._journals.values())))
            draw = chosen.random()
            if draw < 0.01:
                self._checkpoint_soon(chosen.choice(list(self._journals.values())))
            elif draw < 0.015:
                await self.make_journal()
            elif draw < 0.02 and len(self._journals) > 1:
                await self._delete(chosen.choice(list(self._journals)))
        for journal in self._journals.values():
            await journal.durable()  # what nobody waits for would not be synced
        await self._host.loop.create_future()

    def _append(self, journal: Journal) -> None:
        """Append something, and wait until it is safe in one way or the other, or not at all."""
        chosen, promises, identity = self._host.chosen, self._promises, journal.identity
        size = LARGE_BYTES if chosen.random() < LARGE_CHANCE else chosen.choice(SIZES)
        payload = chosen.randbytes(size)

        def fold(entry: Entry) -> Entry:
            promises.appended.add(content_of(entry, payload))
            return entry

        end = journal.append(Kind.DRAFT, payload, fold=fold, records=1, transaction=WRITER).end
        draw = chosen.random()
        if draw < 0.4:
            journal.when_kept(lambda: promises.keep(identity, end, self._lives()))
        elif draw < 0.8:
            journal.when_durable(lambda: promises.make_durable(identity, end))

    def _checkpoint_soon(self, journal: Journal) -> None:
        if self._checkpointing is None or self._checkpointing.done():
            self._checkpointing = self._host.loop.create_task(self._checkpoint_one(journal))

    def _lives(self) -> dict[int, int]:
        """Whose acks count, by machine."""
        return {broker - 1: incarnation for broker, incarnation in self._led.lives.items()}

    async def _checkpoint_one(self, journal: Journal) -> None:
        """Store a checkpoint once all is durable, and delete what lies below it."""
        position = journal.watermarks.appended
        epochs = journal.epochs_below(position)
        try:
            await journal.sync()
        except JournalFull:
            return
        if journal.identity not in self._journals:
            return
        self._stored.checkpoints[journal.identity] = JournalCheckpoint(position, epochs)
        for segment in journal.reclaim(position):
            await self._threads.run(segment.discard)

    async def make_journal(self) -> None:
        """Make a journal, as for a topic."""
        identity = self._host.chosen.randbytes(20)
        journal = await self._open_raw(identity)
        self._promises.begin(identity)
        self.followers.lead(journal)

    async def _delete(self, identity: bytes) -> None:
        """Delete a journal, as with its topic."""
        journal = self._journals.pop(identity)
        self._promises.drop(identity)
        journal.abandon()
        self.followers.forget(identity)
        while journal.is_at_work:
            await asyncio.sleep(PAUSE_SECONDS)
        for segment in journal.reclaim_all():
            await self._threads.run(delete_file, segment.path)
