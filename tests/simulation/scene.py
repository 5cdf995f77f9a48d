"""What all clients of one simulation share: topics, the way to the broker, chance, and the record."""

from __future__ import annotations

import asyncio
import itertools
import random

from tests.checker.history import Value
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.machine import Machine
from tests.simulation.network import Remote
from tests.simulation.record import Record

TOPICS = {"a": 2, "b": 1}
PARTITIONS = [f"{topic}-{number}" for topic, count in TOPICS.items() for number in range(count)]
CRASH_CHANCE = 0.05
THINK_SECONDS = 0.5
BATCH_RECORDS_MAX = 3


class Scene:
    """Shared by the clients of one run. All their chance comes from one seed."""

    def __init__(
        self, loop: VirtualLoop, machine: Machine, chosen: random.Random, coverage: Coverage
    ) -> None:
        self.loop = loop
        self.machine = machine
        self.coverage = coverage
        self.record = Record()
        self.names = itertools.count(1)
        self.values = itertools.count(1)
        self.identities: set[tuple[int, int]] = set()
        self.is_stopping = False
        self._chosen = chosen

    @property
    def now(self) -> float:
        return self.loop.now

    def remote(self, life: Life) -> Remote:
        """A client's access to the broker."""
        return Remote(lambda: self.machine.connect(life), self.machine.weather, self.chance(), self.coverage)

    def chance(self) -> random.Random:
        """The chance of one more client."""
        return random.Random(self._chosen.getrandbits(64))

    def new_values(self, chosen: random.Random) -> list[Value]:
        """The messages of a batch, which nobody else writes."""
        return [next(self.values) for _ in range(chosen.randint(1, BATCH_RECORDS_MAX))]

    async def think(self, chosen: random.Random) -> None:
        """Wait for a moment, as an application does between two things."""
        await asyncio.sleep(chosen.random() * THINK_SECONDS)
