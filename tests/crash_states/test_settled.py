"""A loss of power is in the record of a replica set until what follows from it is durable."""

from __future__ import annotations

import random

import pytest

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.record import decode
from faircopy.arbiter.registration import RECORD
from faircopy.shard.shard import METADATA_DIRECTORY
from tests.crash_states.replica_set import Way, World, record_of
from tests.crash_states.sweep import in_a_world
from tests.simulation.aftermath import Fate
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import Operation


class Watch:
    """Notes the I/Os of the metadata journals, and how many there had been whenever the record was told that
    its leader has all drafts.
    """

    def __init__(self, world: World) -> None:
        self.operations: list[str] = []
        self.told_after: list[list[str]] = []
        self._world = world
        world.machine.disk.before = self._before_io
        world.arbiter.before_write = self._before_write

    def _before_io(self, operation: Operation) -> None:
        if METADATA_DIRECTORY in operation.path.parts:
            self.operations.append(operation.name)

    def _before_write(self, number: int, attempt: Attempt) -> None:
        value = attempt.changes.get(RECORD)
        if value is not None and decode(value).drafts > record_of(self._world.arbiter).drafts:
            self.told_after.append(list(self.operations))


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_is_settled_once_its_aborts_are_durable(seed: int) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = World(loop, random.Random(seed).getrandbits(32))
        with world.machine:
            await world.prepare(Way.MOVES)
            await world.machine.start()
            await world.begin(17, "green/1")
            world.machine.lose_power(Fate.LOST)
            watch = Watch(world)
            await world.machine.start()
            assert world.machine.is_up
            (told,) = watch.told_after
            assert "write" in told
            assert told[-1] == "sync"
            assert record_of(world.arbiter).drafts == {2}
            await world.machine.stop()
            await world.live()

    in_a_world(main)
