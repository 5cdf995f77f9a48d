"""A leader feeds a follower over connections that are cut and fall silent: in the end, all is there."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from faircopy.replication.errors import LinkLost
from faircopy.replication.following import Following, Needs
from faircopy.replication.link import Link, open_link
from faircopy.replication.messages import Acks, Alignment, Comparison, Hello, Marks
from faircopy.replication.timing import Timing
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.switch import Switch
from tests.unit.replication.follower import KNOWN, Follower, payloads_in, run
from tests.unit.replication.memory_link import prove
from tests.unit.replication.test_replica_by_chance import some_journal

SEEDS = 10
LEADER, FOLLOWER = 0, 1
TIMING = Timing(heartbeat_seconds=0.5, silence_seconds=2.0, handshake_seconds=2.0)
PATIENCE_SECONDS = 2.0
PIECE_BYTES_MAX = 6_000
PAUSE_SECONDS = 0.5
FAULTS = 12
FAULT_SECONDS = 5.0
ENOUGH_SECONDS = 300.0


class Leader:
    """A leader that connects again and again. `acked` is what it has heard in all links."""

    def __init__(self, loop: VirtualLoop, switch: Switch, chosen: random.Random) -> None:
        self._loop = loop
        self._switch = switch
        self._chosen = chosen
        self.journals = {identity: some_journal(identity, chosen) for identity in KNOWN}
        self.acked = dict.fromkeys(KNOWN, 0)
        self.links = 0

    @property
    def is_done(self) -> bool:
        return all(self.acked[each] == journal.end for each, journal in self.journals.items())

    async def lead(self) -> None:
        while not self.is_done:
            with suppress(LinkLost, OSError, TimeoutError):
                await self._serve(await self._connect())
            await asyncio.sleep(PAUSE_SECONDS)

    async def _connect(self) -> Link:
        async with asyncio.timeout(PATIENCE_SECONDS):
            link = await open_link(lambda protocol: self._switch.connect(LEADER, FOLLOWER, protocol))
        link.trust()
        return link

    async def _serve(self, link: Link) -> None:
        self.links += 1
        link.send(Hello(bytes(16), 1, 57, 12, 2, bytes(32)))
        link.send(Comparison(tuple(each.compared() for each in self.journals.values()), True))
        shipping: asyncio.Task[None] | None = None
        try:
            while not self.is_done:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    message = await link.receive()
                if isinstance(message, Alignment):
                    ends = {each.identity: each.end for each in message.journals}
                    shipping = self._loop.create_task(self._ship(link, ends))
                elif isinstance(message, Acks):
                    self.acked |= {each.identity: each.synced for each in message.journals}
        finally:
            if shipping is not None:
                shipping.cancel()
            link.abort()

    async def _ship(self, link: Link, ends: dict[bytes, int]) -> None:
        """Send entries of random journals in random pieces, then heartbeats."""
        self.acked |= ends
        while lacking := [each for each in self.journals.values() if ends[each.identity] < each.end]:
            journal = self._chosen.choice(lacking)
            stop = journal.end_after(ends[journal.identity])
            while (at := ends[journal.identity]) < stop:
                piece = journal.data(at, min(stop, at + self._chosen.randint(1, PIECE_BYTES_MAX)))
                link.send(piece)
                ends[journal.identity] += len(piece.content)
                await asyncio.sleep(self._chosen.random() * PAUSE_SECONDS)
        while True:
            link.send(Marks(1, 12, {}, ()))
            await asyncio.sleep(TIMING.heartbeat_seconds)


async def trouble(switch: Switch, chosen: random.Random) -> None:
    """Cut ways, or let them fall silent, one after the other."""
    for _ in range(FAULTS):
        way = chosen.choice([(LEADER, FOLLOWER), (FOLLOWER, LEADER)])
        chosen.choice([switch.cut, switch.fall_silent])(*way)
        await asyncio.sleep(chosen.random() * FAULT_SECONDS)
        switch.heal(*way)
        await asyncio.sleep(chosen.random())


async def prove_and_trust(link: Link) -> Hello:
    link.trust()
    return await prove(link)


def test_all_is_there_in_the_end() -> None:
    assert sum(links_of(seed) for seed in range(SEEDS)) > 2 * SEEDS


def links_of(seed: int) -> int:
    """How many links it takes until a follower has everything."""
    chosen = random.Random(seed)
    leaders: list[Leader] = []

    async def scene(follower: Follower) -> None:
        loop = follower.loop
        switch = Switch(loop, 2, chosen, Coverage())
        for machine in (LEADER, FOLLOWER):
            switch.begin(machine, Life(str(machine)))
        following = listen(follower, switch)
        leader = Leader(loop, switch, chosen)
        leaders.append(leader)
        async with asyncio.timeout(ENOUGH_SECONDS):
            await asyncio.gather(leader.lead(), trouble(switch, chosen))
        await following.close()
        found = {identity: payloads_in(journal) for identity, journal in follower.journals.items()}
        assert found == {identity: journal.payloads for identity, journal in leader.journals.items()}

    run(scene, seed=seed)
    return leaders[0].links


def listen(follower: Follower, switch: Switch) -> Following:
    needs = Needs(prove_and_trust, lambda: False, lambda _marks: None, lambda: 0)
    following = Following(follower.replica, needs, TIMING)
    follower.on_moved = following.journals_moved

    switch.listen(FOLLOWER, lambda: Link(following.accept))
    return following
