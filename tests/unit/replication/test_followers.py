"""A leader and its followers: who is missing and why, links that are begun again, and the barrier."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import pytest

from faircopy.arbiter.record import SetRecord
from faircopy.errors import FaircopyError
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.replication.errors import Refused
from faircopy.replication.followers import Followers, Reachable
from faircopy.replication.handshake import receive_leader
from faircopy.replication.led import Led
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import AckedJournal, Acks, AlignedJournal, Alignment, Comparison, Data
from faircopy.replication.timing import Timing
from faircopy.storage.system import mount
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life as Process
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.switch import Switch
from tests.simulation.threads import SimulatedThreads
from tests.unit.replication.feeding import DATA, P, Q, append
from tests.unit.replication.linked import EPOCH, LEADER, own

RECORD = SetRecord("set", (1, 2, 3), *LEADER, EPOCH, {LEADER.broker: LEADER.incarnation})
TIMING = Timing()
SOON_SECONDS = 2.0
PATIENCE_SECONDS = 600.0


class Stub:
    """A follower without journals: it says that it has what it was sent. `has` is what it has in this life.
    `refuses`: why it takes no leader. `acks`: whether it says what it has. `holds`: the journals that it does
    not compare.
    """

    def __init__(self, life: Life, switch: Switch) -> None:
        self.life = life
        self.has: dict[bytes, int] = {}
        self.refuses = ""
        self.acks = True
        self.holds: set[bytes] = set()
        self.links: list[Link] = []
        self._serving: list[asyncio.Future[None]] = []
        self.process = Process(str(life))
        switch.begin(life.broker - 1, self.process)
        switch.listen(life.broker - 1, lambda: Link(self._accept))

    def _accept(self, link: Link) -> None:
        self._serving.append(asyncio.ensure_future(self._serve(link)))

    async def _serve(self, link: Link) -> None:
        self.links.append(link)
        try:
            await receive_leader(link, own(self.life), lambda: EPOCH)
            if self.refuses:
                raise Refused(self.refuses)
            while True:
                await self._answer(link)
        except Refused as error:
            link.refuse(error)
        except FaircopyError:
            link.abort()

    def _row(self, identity: bytes) -> AlignedJournal:
        end = self.has.get(identity, 0)
        return AlignedJournal(identity, end, end, end)

    def align(self, identity: bytes) -> None:
        """Say what it holds back."""
        self.links[-1].send(Alignment((self._row(identity),), is_last=True))

    async def _answer(self, link: Link) -> None:
        message = await link.receive()
        if isinstance(message, Comparison):
            rows = [self._row(each.identity) for each in message.journals if each.identity not in self.holds]
            link.send(Alignment(tuple(rows), message.is_last))
        elif isinstance(message, Data):
            end = self.has[message.identity] = message.position + len(message.content)
            if self.acks:
                link.send(Acks((AckedJournal(message.identity, end, end),), is_short=False))
        else:
            link.send(Acks((), is_short=False))


class SetOfThree:
    """A leader with two journals, and two places for followers."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.switch = Switch(loop, 3, random.Random(1), Coverage())
        self.stubs: dict[int, Stub] = {}
        threads = SimulatedThreads(loop, 2, random.Random(1))
        self.process = Process("leader")
        self.switch.begin(0, self.process)
        self.followers = Followers(
            own(LEADER),
            Led(LEADER, RECORD),
            (2, 3),
            self._reach,
            threads,
            lambda: 0,
            TIMING,
            loop,
        )
        options = JournalOptions(
            Durability.FSYNC, 1 << 20, lambda: 7, lambda error: None,
            on_moved=self.followers.note_moved, is_replicated=True,
        )  # fmt: skip
        self.journals = [
            Journal(DATA / each.decode(), each, threads, loop, options, EPOCH) for each in (P, Q)
        ]
        for journal in self.journals:
            journal.open_raw(0)

    async def _reach(self, broker: int) -> Reachable:
        while broker not in self.stubs:
            await asyncio.sleep(0.1)
        return Reachable(
            self.stubs[broker].life, lambda protocol: self.switch.connect(0, broker - 1, protocol)
        )

    def begin(self, broker: int, incarnation: int = 31) -> Stub:
        """A follower begins a life."""
        self.stubs[broker] = Stub(Life(broker, incarnation), self.switch)
        return self.stubs[broker]

    def lead(self) -> None:
        for journal in self.journals:
            self.followers.lead(journal)


def run_set(test: Callable[[SetOfThree], Awaitable[None]]) -> None:
    """Run a test in virtual time, with a leader whose followers are not there yet."""
    loop = VirtualLoop()

    async def main() -> None:
        three = SetOfThree(loop)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await test(three)
        finally:
            await three.followers.close()
            for stub in three.stubs.values():
                stub.process.end()
                for link in stub.links:
                    link.abort()
            await asyncio.sleep(SOON_SECONDS)

    disk = LyingDisk(lambda: 0)
    disk.make_directory(DATA)
    disk.sync_directory(DATA.parent)
    try:
        with mount(disk):
            loop.run(main())
    finally:
        loop.close()


def is_over(waiting: asyncio.Future[None]) -> bool:
    return waiting.done()


def test_the_barrier_waits_until_all_have_all() -> None:
    async def test(three: SetOfThree) -> None:
        end = append(three.journals[0], 100).end
        three.journals[0].when_kept(lambda: None)
        three.lead()
        barrier = asyncio.ensure_future(three.followers.barrier(three.journals))
        three.begin(2)
        slow = three.begin(3)
        slow.acks = False
        await asyncio.sleep(SOON_SECONDS)
        assert not is_over(barrier) and three.stubs[2].has == {P: end} == slow.has
        assert three.journals[0].watermarks.durable == 0
        slow.acks = True
        slow.links[-1].send(Acks((AckedJournal(P, end, end),), is_short=False))
        await asyncio.sleep(SOON_SECONDS)
        assert is_over(barrier) and three.journals[0].watermarks.durable == end
        assert not three.followers.missing

    run_set(test)


def test_the_barrier_waits_until_empty_journals_are_compared() -> None:
    """A follower may have something there, and then the leader has lost it."""

    async def test(three: SetOfThree) -> None:
        three.lead()
        barrier = asyncio.ensure_future(three.followers.barrier(three.journals))
        three.begin(2)
        await asyncio.sleep(SOON_SECONDS)
        assert not is_over(barrier)
        three.begin(3).has = {Q: 64}
        await asyncio.sleep(SOON_SECONDS)
        assert not is_over(barrier) and "is an older copy" in three.followers.missing[3].why
        three.stubs[3].has = {}
        three.stubs[3].holds = {Q}
        await asyncio.sleep(SOON_SECONDS)
        assert not is_over(barrier)
        three.stubs[3].align(Q)
        await asyncio.sleep(SOON_SECONDS)
        assert is_over(barrier)

    run_set(test)


def test_who_is_missing_is_known_since_when_and_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test(three: SetOfThree) -> None:
        three.lead()
        assert three.followers.missing.keys() == {2, 3}
        three.begin(2)
        three.begin(3).refuses = "it has another history"
        await asyncio.sleep(SOON_SECONDS)
        assert three.followers.missing.keys() == {3}
        assert "broker 3 in its life 31 refuses: it has another history" in three.followers.missing[3].why
        since = three.followers.missing[3].since
        three.stubs[3].refuses = ""
        await asyncio.sleep(SOON_SECONDS)
        assert not three.followers.missing
        three.stubs[2].process.end()
        three.switch.begin(1, Process("nobody listens"))
        await asyncio.sleep(SOON_SECONDS)
        assert three.followers.missing.keys() == {2}
        assert three.followers.missing[2].since > since
        await asyncio.sleep(10 * SOON_SECONDS)

    run_set(test)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("faircopy")]
    assert len([line for line in said if "it has another history" in line]) == 1
    assert "broker 2 in its life 31 follows, in epoch 12" in said


def test_another_life_counts_with_what_it_has() -> None:
    """A8: what an earlier life has acked, this one may have lost."""

    async def test(three: SetOfThree) -> None:
        three.lead()
        three.begin(2)
        three.begin(3)
        journal = three.journals[0]
        append(journal, 100)
        await journal.durable()
        former = three.stubs[2]
        former.process.end()
        later = three.begin(2, incarnation=32)
        later.acks = False
        await asyncio.sleep(SOON_SECONDS)
        append(journal, 100)
        assert (later.has, journal.watermarks.replicated) == (
            {P: journal.watermarks.durable},
            journal.watermarks.durable,
        )
        waiting = asyncio.ensure_future(journal.durable())
        await asyncio.sleep(SOON_SECONDS)
        assert not is_over(waiting)
        later.links[-1].send(Acks((AckedJournal(P, later.has[P], later.has[P]),), is_short=False))
        await waiting

    run_set(test)


def test_a_disk_that_is_nearly_full_is_known() -> None:
    async def test(three: SetOfThree) -> None:
        three.lead()
        three.begin(2)
        three.begin(3)
        await asyncio.sleep(SOON_SECONDS)
        assert not three.followers.are_short
        three.stubs[3].links[-1].send(Acks((), is_short=True))
        await asyncio.sleep(TIMING.heartbeat_seconds / 4)
        assert three.followers.are_short

    run_set(test)
