"""A directory comes to its replica set, and something happens on the way, at an I/O or at a write to the
arbiter.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from faircopy.arbiter.backend import Attempt, Unanswered
from faircopy.arbiter.directory_note import NOTE_NAME, DirectoryNote, decode_note
from faircopy.arbiter.record import NOBODY, SetRecord, decode
from faircopy.arbiter.registration import RECORD
from faircopy.storage.epochs import greatest_epoch
from faircopy.storage.local_notes import LocalNotes
from faircopy.transactions.numbers import first_number
from tests.crash_states.stage import SETTINGS, TRIES
from tests.crash_states.sweep import a_remote, in_a_world
from tests.crash_states.topics import Owner, values_of
from tests.simulation.aftermath import Fate
from tests.simulation.arbiter import SimulatedArbiter, TimedBackend
from tests.simulation.coverage import Coverage
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import Crash
from tests.simulation.machine import Machine
from tests.simulation.producer import SimulatedProducer
from tests.simulation.store import SimulatedStore

LATE_SECONDS = 0.5
TOPIC = "c"


class Way(Enum):
    """How a directory comes to its set."""

    FOUNDS = "an empty directory founds it"
    ADOPTED = "a directory that has run alone founds it"
    ADOPTED_AFTER_A_KILL = "the same, and its last process was killed"
    MOVES = "its directory gets another broker"


class WriteFate(Enum):
    """What becomes of a write to the arbiter that its process does not hear of."""

    LANDS = "lands"
    IS_LOST = "is lost"
    LANDS_LATE = "lands late"


class Trouble(NamedTuple):
    """What happens once in a start, at the I/O or the write to the arbiter of this number, from 1. With
    `write`, it is a write, which has this fate; otherwise it is an I/O. `is_killed`: the process, at once.
    `fate`: the power is lost, and what was not synced has this fate.
    """

    at: int
    write: WriteFate | None = None
    is_killed: bool = False
    fate: Fate | None = None


NONE = Trouble(0)


class ScriptedArbiter(SimulatedArbiter):
    """An arbiter without trouble, but for one write."""

    def __init__(self, loop: VirtualLoop, chosen: random.Random) -> None:
        super().__init__(loop, chosen, Coverage())
        self.broker = 1
        self.writes = 0
        self.before_write: Callable[[int, Attempt], None] = lambda number, attempt: None

    def broker_id(self) -> int:
        return self.broker

    def backend(self) -> TimedBackend:
        self.newest = ScriptedBackend(self)
        return self.newest

    def meet(self, attempt: Attempt, fate: WriteFate) -> None:
        """A write has this fate."""
        if fate is WriteFate.LANDS:
            self.server.write(attempt)
        elif fate is WriteFate.LANDS_LATE:
            self.loop.call_later(LATE_SECONDS, self.server.write, attempt, context=self.context)


class ScriptedBackend(TimedBackend):
    """A life's way to it."""

    def __init__(self, arbiter: ScriptedArbiter) -> None:
        super().__init__(arbiter)
        self._scripted = arbiter

    async def attempt(self, attempt: Attempt) -> int | None:
        self._scripted.writes += 1
        self._scripted.before_write(self._scripted.writes, attempt)
        return await super().attempt(attempt)


@dataclass
class Left:
    """What a directory knew when its process had ended: no later life may contradict it."""

    note: DirectoryNote
    epoch: int


class World:
    """A machine, its arbiter, and a client who remembers what was committed."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.machine = Machine(loop, SETTINGS, random.Random(seed), Coverage())
        self.arbiter = ScriptedArbiter(loop, random.Random(seed))
        self._loop = loop
        self._committed: list[int] = []

    async def prepare(self, way: Way) -> None:
        """Let everything be as it is before the start that matters."""
        if way is Way.MOVES:
            self.machine.arbiter = self.arbiter
        if way is not Way.FOUNDS:
            await self.live()
            await self.live(is_killed=way is Way.ADOPTED_AFTER_A_KILL)
        self.machine.arbiter = self.arbiter
        self.arbiter.broker = 2 if way is Way.MOVES else 1

    async def live(self, *, is_killed: bool = False) -> None:
        """A whole life: everything that was committed is there, and one more transaction is."""
        left = self.left()
        await self.machine.start()
        broker = self.machine.broker
        assert broker is not None, self.machine.failures
        if self.machine.arbiter is not None:
            assert broker.incarnation > left.epoch
            assert broker.incarnation == record_of(self.arbiter).epoch
            check_history(self.arbiter, left)
        if not self._committed:
            await Owner(a_remote(self.machine), lambda: 0).make(TOPIC, configs={})
        assert await values_of(a_remote(self.machine), f"{TOPIC}-0") == tuple(self._committed)
        await self._commit()
        ranks = self._ranks()
        assert ranks == sorted(ranks)
        assert ranks[-1] >= first_number(broker.incarnation)
        if is_killed:
            self.machine.kill()
        else:
            await self.machine.stop()
        assert not self.machine.differences
        if self.machine.arbiter is not None:
            assert self.left().note.broker == self.arbiter.broker

    async def begin(self, value: int, name: str = "red/1") -> SimulatedProducer:
        """Open a transaction with one message."""
        producer = SimulatedProducer(a_remote(self.machine), name, random.Random(0), tries=TRIES)
        await producer.begin_life()
        await producer.add_partitions([f"{TOPIC}-0"])
        await producer.send(f"{TOPIC}-0", [value], 0)
        return producer

    async def _commit(self) -> None:
        """Commit one more message."""
        value = len(self._committed) + 1
        producer = await self.begin(value)
        await producer.end(committed=True)
        self._committed.append(value)
        assert await values_of(a_remote(self.machine), f"{TOPIC}-0") == tuple(self._committed)

    def _ranks(self) -> list[int]:
        """The ranks of all transactions in the log."""
        assert self.machine.broker is not None
        (partition,) = self.machine.broker.hosted.known(TOPIC).partitions
        end = partition.log.end_offset
        return [span.rank for span in partition.copier.spans.between(0, end)]

    async def start(self, trouble: Trouble) -> tuple[int, int]:
        """Start, with this trouble on the way. Returns how many I/Os and writes to the arbiter there were."""
        disk, writes = self.machine.disk, self.arbiter.writes
        operations = disk.operations
        disk.before = lambda operation: self._before_io(operation.number - operations, trouble)
        self.arbiter.before_write = lambda number, attempt: self._before_write(
            number - writes, attempt, trouble
        )
        await self.machine.start()
        disk.before = self.machine.disk.before = lambda operation: None
        self.arbiter.before_write = lambda number, attempt: None
        assert not self.machine.failures, self.machine.failures
        return disk.operations - operations, self.arbiter.writes - writes

    def _before_io(self, number: int, trouble: Trouble) -> None:
        if trouble.write is None and number == trouble.at:
            self._end(trouble)

    def _before_write(self, number: int, attempt: Attempt, trouble: Trouble) -> None:
        if trouble.write is None or number != trouble.at:
            return
        self.arbiter.meet(attempt, trouble.write)
        if not trouble.is_killed:
            raise Unanswered("no answer")
        self._end(trouble)

    def _end(self, trouble: Trouble) -> None:
        if trouble.fate is None:
            self.machine.kill()
        else:
            self.machine.lose_power(trouble.fate)
        raise Crash

    def left(self) -> Left:
        """What the directory knows now."""
        store = SimulatedStore(self.machine.contents, self._loop, random.Random(0), lambda: None)
        notes = LocalNotes(store)
        return Left(decode_note(notes.get(NOTE_NAME)), greatest_epoch(notes))


def record_of(arbiter: SimulatedArbiter) -> SetRecord:
    """The record now."""
    return decode(arbiter.server.entries[RECORD].value)


def check_history(arbiter: ScriptedArbiter, left: Left) -> None:
    """There is one set for ever, whose id the directory had noted, if it had; and each epoch has one life."""
    records = [decode(event.value) for event in arbiter.server.history if event.key == RECORD and event.value]
    assert {record.set_id for record in records} <= {left.note.set_id or records[-1].set_id}
    epochs = [record.epoch for record in records]
    assert epochs == sorted(epochs)
    leaders = {(record.epoch, *life_of(record)) for record in records if record.leader_incarnation != NOBODY}
    assert len(leaders) == len({epoch for epoch, *_ in leaders})


def life_of(record: SetRecord) -> tuple[int, int]:
    """Who leads, and in which life."""
    return record.leader, record.leader_incarnation


def counted(way: Way, seed: int) -> tuple[int, int]:
    """How many I/Os a start without trouble has, and how many writes to the arbiter."""

    async def main(loop: VirtualLoop) -> tuple[int, int]:
        world = World(loop, seed)
        with world.machine:
            await world.prepare(way)
            return await world.start(NONE)

    return in_a_world(main)


def play(way: Way, trouble: Trouble, seed: int, *, goes_back: bool = False) -> None:
    """Start with trouble; what comes then comes up by itself, twice. With `goes_back`, the directory is given
    back to its former broker.
    """

    async def main(loop: VirtualLoop) -> None:
        world = World(loop, seed)
        with world.machine:
            await world.prepare(way)
            await world.start(trouble)
            if world.machine.is_up:
                assert not (trouble.is_killed or trouble.fate), "nothing has happened"
                await world.machine.stop()
            if goes_back:
                world.arbiter.broker = 1
            for _ in range(2):
                await world.live()
                await asyncio.sleep(2 * LATE_SECONDS)
        assert not loop.failures

    in_a_world(main)
