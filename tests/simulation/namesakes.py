"""Clients of a simulation whose transactional ids look like names of other things: of members of joint
groups, past and to come, of partitions, of consumer groups. None of them may get in the way of what it is
named after.
"""

from __future__ import annotations

import random

from faircopy.transactions.transaction import member_id
from faircopy.wire.error_codes import ErrorCode
from tests.simulation.applications import Applications
from tests.simulation.loop import Life
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer
from tests.simulation.scene import PARTITIONS, Scene

AHEAD_MAX = 6
"""How far beyond the last known producer id those of the next members are guessed."""
MET = TOOK, RESERVED = (
    "namesake: took the name that a member would once have had",
    "namesake: refused the name of a member",
)


class Namesakes:
    """`jobs` are the joint groups whose members' names are taken, `groups` are consumer groups."""

    def __init__(self, scene: Scene, applications: Applications, jobs: list[str], groups: list[str]) -> None:
        self._scene = scene
        self._applications = applications
        self._jobs = jobs
        self._others = [*PARTITIONS, *groups, "__consumer_offsets", "_metadata/0"]
        self._last_id = 0
        scene.coverage.announce(*MET)

    async def run(self) -> None:
        """Take one name after the other, each for one transaction."""
        chosen = self._scene.chance()
        while not self._scene.is_stopping:
            await self._scene.think(chosen)
            await self._take(self._name(chosen), chosen)

    def _name(self, chosen: random.Random) -> str:
        job, number = chosen.choice(self._jobs), self._last_id + chosen.randint(-2, AHEAD_MAX)
        return chosen.choice([f"{job}/{number}", member_id(job, number), chosen.choice(self._others)])

    async def _take(self, name: str, chosen: random.Random) -> None:
        is_reserved = any(name.startswith(member_id(job, 0)[:-1]) for job in self._jobs)
        instance = f"{name}#{next(self._scene.names)}"
        remote = self._scene.remote(Life(instance))
        producer = SimulatedProducer(remote, name, chosen, self._scene.identities)
        try:
            await producer.begin_life()
            assert not is_reserved, f"{name} was given to a client"
            self._last_id = producer.snapshot().identity[0]
            if name.partition("/")[0] in self._jobs:
                self._scene.coverage.hit(TOOK)
            await self._applications.transaction(instance, name, producer, remote, chosen)
        except Refused as error:
            if is_reserved and error.code is ErrorCode.INVALID_REQUEST:
                self._scene.coverage.hit(RESERVED)
            self._scene.coverage.hit(f"producer: ended by {error.code.name}")
        except GaveUp:
            self._scene.coverage.hit("producer: gave up")
