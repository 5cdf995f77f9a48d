"""A follower that is fed in random pieces, and that dies at any operation of its disk, keeps prefixes of the
leader's journals, and has never acked more than it still has.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from itertools import accumulate

import pytest

from faircopy.replication.messages import AckedJournal, AlignedJournal
from faircopy.storage.paths import sync_names
from faircopy.storage.system import mount
from tests.simulation.aftermath import Fate
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import Crash, Operation
from tests.unit.replication.follower import DIRECTORY, KNOWN, Follower, new_disk, payloads_in
from tests.unit.replication.leaders_journal import LeadersJournal

SEEDS = 40
LIVES = 6
LINKS = 2
MORE_CHANCE = 0.95
ENTRIES_MAX = 30
PAYLOAD_BYTES_MAX = 3_000
PIECE_BYTES_MAX = 6_000
OPERATIONS_MAX = 80


def some_journal(identity: bytes, chosen: random.Random) -> LeadersJournal:
    journal = LeadersJournal(identity)
    epochs = accumulate(chosen.choice((0, 0, 0, 1, 5)) for _ in range(chosen.randint(0, ENTRIES_MAX)))
    for epoch in epochs:
        if journal.end and chosen.random() < 0.2:
            journal.begin_segment(chosen.getrandbits(32))
        journal.add(chosen.randbytes(chosen.randint(0, PAYLOAD_BYTES_MAX)), epoch=epoch)
    return journal


class Machine:
    """A follower's machine, life after life. `acked` is what it must still have of each journal: the written
    part after a kill, the synced part after a loss of power.
    """

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.journals = [some_journal(identity, self.chosen) for identity in KNOWN]
        self.disk = new_disk()
        self.acked = {each: AckedJournal(each, 0, 0) for each in KNOWN}

    def live(self, crash_at: int | None = None) -> None:
        """Let a process follow until the disk's operation of this number, then kill it or take its power; or
        let it have everything.
        """
        loop = VirtualLoop()
        with closing(loop):
            loop.run(self._live(loop, crash_at))
        assert not loop.failures
        if self.chosen.random() < 0.5:
            self.disk = self.disk.kill()
        else:
            self.disk = self.disk.crash(self.chosen.choice(list(Fate)), self.chosen)
            self.acked = {
                each: AckedJournal(each, was.synced, was.synced) for each, was in self.acked.items()
            }

    async def _live(self, loop: VirtualLoop, crash_at: int | None) -> None:
        life, crash = Life("follower"), loop.create_future()

        def before(operation: Operation) -> None:
            if operation.number == crash_at:
                life.end()
                crash.set_result(None)
                raise Crash

        self.disk.before = before
        with mount(self.disk):
            follower = Follower(loop, self.disk, self.chosen)
            work = loop.create_task(self._follow(follower, is_last=crash_at is None), context=life.context)
            await asyncio.wait([work, crash], return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not isinstance(work.exception(), Crash):
                await work

    async def _follow(self, follower: Follower, *, is_last: bool) -> None:
        sync_names(DIRECTORY)  # as a start does
        follower.on_moved = lambda: self.acked.update(follower.acked())
        for _ in range(LINKS):
            aligned = await follower.link(*self.journals)
            for each, there in zip(aligned, self.journals, strict=True):
                self._check(each, payloads_in(follower.journals[each.identity]), there)
                self.acked[each.identity] = AckedJournal(each.identity, each.end, each.synced)
            await self._feed(follower, {each.identity: each.end for each in aligned}, is_last=is_last)
        if is_last:
            for there in self.journals:
                assert await follower.synced(there.identity) == there.end
                assert payloads_in(follower.journals[there.identity]) == there.payloads

    def _check(self, aligned: AlignedJournal, found: list[bytes], there: LeadersJournal) -> None:
        """What it has is a prefix, and not less than what counts."""
        assert found == there.payloads[: len(found)]
        assert aligned.end == aligned.synced == sum(entry.length for entry in there.entries[: len(found)])
        assert aligned.end >= self.acked[there.identity].written

    async def _feed(self, follower: Follower, ends: dict[bytes, int], *, is_last: bool) -> None:
        """Send random pieces, of one journal up to the end of an entry, then of another one."""
        lacking = [journal for journal in self.journals if ends[journal.identity] < journal.end]
        while lacking and (is_last or self.chosen.random() < MORE_CHANCE):
            journal = self.chosen.choice(lacking)
            at = ends[journal.identity]
            stop = self.chosen.choice([entry.end for entry in journal.entries if entry.end > at][:3])
            while at < stop:
                piece = journal.data(at, min(stop, at + self.chosen.randint(1, PIECE_BYTES_MAX)))
                await follower.replica.take(piece)
                at += len(piece.content)
            ends[journal.identity] = stop
            if stop == journal.end:
                lacking.remove(journal)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_left_is_a_prefix_and_has_all_that_was_acked(seed: int) -> None:
    machine = Machine(seed)
    for _ in range(LIVES):
        machine.live(crash_at=machine.chosen.randint(1, OPERATIONS_MAX))
    machine.live()
