"""The sweep: play a scenario, crash at each of its I/Os in each state that the disk may be left in, recover, check."""

from __future__ import annotations

import copy
import gc
import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.checker.check import Verdict, check
from tests.checker.history import Final, Operation, Read
from tests.crash_states.scenarios import Step, name_of
from tests.crash_states.stage import SETTINGS, Moment, Stage
from tests.crash_states.states import states_of
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.machine import Machine
from tests.simulation.network import Remote
from tests.simulation.run import Complaints, listening

PARTITIONS = ["a-0", "b-0"]
SETTLE_SECONDS = 1.0


class Wrong(NamedTuple):
    """A crash state that does not come back as it should."""

    scenario: str
    crash_before: str
    state: int
    why: str

    def __str__(self) -> str:
        return f"{self.scenario}: crash before {self.crash_before}, state {self.state}: {self.why}"


def sweep(steps: tuple[Step, ...], seed: int, states_max: int | None = None) -> Iterator[Wrong | None]:
    """Check every state of a scenario; yields one thing for each, None where all is well.

    With `states_max`, at most so many of each crash point's states, chosen by the seed.
    """
    chosen = random.Random(seed)
    for moment in play(steps, seed):
        disks = list(states_of(moment.disk, chosen))
        if states_max is not None and len(disks) > states_max:
            disks = chosen.sample(disks, states_max)
        for number, disk in enumerate(disks):
            why = what_is_wrong(moment, disk, chosen.getrandbits(64))
            where = f"{moment.operation.name} {moment.operation.path} ({moment.operation.number})"
            yield Wrong(name_of(steps), where, number, why) if why else None


def play(steps: tuple[Step, ...], seed: int) -> list[Moment]:
    """Play a scenario on a machine without faults; the moments before each of its I/Os, and the one after all."""
    loop = VirtualLoop()

    async def main() -> list[Moment]:
        stage = Stage(loop, random.Random(seed))
        with stage.machine:
            await stage.begin()
            for step in steps:
                await step(stage)
            stage.end()
        return stage.moments

    gc.disable()
    try:
        return loop.run(main())
    finally:
        gc.enable()
        loop.close()


def what_is_wrong(moment: Moment, disk: LyingDisk, seed: int) -> str:
    """Start a broker on this disk, read all, and check it against what clients knew. Empty if all is well."""
    loop, complaints = VirtualLoop(), Complaints()

    async def main() -> str:
        machine = Machine(loop, SETTINGS, random.Random(seed), Coverage())
        machine.disk = disk
        machine.contents = copy.deepcopy(moment.contents)
        machine.boots = 1
        await machine.start()
        if machine.failures or not machine.is_up:
            return f"the broker did not start: {machine.failures}"
        finals = await read_all(machine)
        await machine.stop()
        if complaints.found or loop.failures:
            return str([*complaints.found, *loop.failures])
        verdict, findings = check([*moment.history, *finals])
        return "" if verdict is Verdict.VALID else "; ".join(map(str, findings)) or verdict.value

    with listening(complaints):
        gc.disable()
        try:
            return loop.run(main())
        finally:
            gc.enable()
            loop.close()


async def read_all(machine: Machine) -> list[Operation]:
    """Each partition from its start to its end."""
    life = Life("final")
    finals: list[Operation] = []
    for name in PARTITIONS:
        remote = Remote(lambda: machine.connect(life), machine.weather, random.Random(0), Coverage())
        consumer = SimulatedConsumer(remote, [name], is_committed=True)
        start, end = await consumer.bound(name, EARLIEST), await consumer.bound(name, LATEST)
        consumer.positions[name] = start
        reads: list[Read] = []
        while consumer.positions[name] < end:
            reads += await consumer.poll()
        finals.append(Final(name, start, end, reads))
    return finals
