"""The sweep: play a scenario, crash at each of its I/Os in each state that the disk may be left in, recover, check.

Some of the recoveries, from a loss of power and from a kill, are played again with a loss of power before each of their
own I/Os.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from unittest import mock

from faircopy.broker.settings import Settings
from faircopy.publish import compaction
from tests.checker.check import Verdict, check
from tests.checker.history import Final, Operation, Read, Snapshot
from tests.crash_states.scenarios import Step, has_tables, name_of
from tests.crash_states.stage import SETTINGS, TABLE, TABLES_SETTINGS, TOPICS, Moment, Stage, moment_of
from tests.crash_states.states import states_of
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.machine import DIRECTORY, Machine
from tests.simulation.network import Remote
from tests.simulation.run import MERGED_FILES, Complaints, listening
from tests.simulation.tables import rows_of

Done = TypeVar("Done")

PARTITIONS = ["a-0", "b-0"]
PUBLISH_TRIES = 20
PATIENCE_SECONDS = 300.0


class Wrong(NamedTuple):
    """A crash state that does not come back as it should."""

    scenario: str
    crash_before: str
    state: int
    why: str

    def __str__(self) -> str:
        return f"{self.scenario}: crash before {self.crash_before}, state {self.state}: {self.why}"


class Bounds(NamedTuple):
    """How much of everything to try, None for all.

    `states` of each crash point; and for so many (`second`) of all first crashes, of either kind, a second one at each
    I/O of the recovery, in so many states (`second_states`).
    """

    states: int | None = None
    second: int = 2
    second_states: int = 3


def sweep(steps: tuple[Step, ...], seed: int, bounds: Bounds) -> Iterator[Wrong | None]:
    """Check the states of a scenario; yields one thing for each, None where all is well."""
    chosen = random.Random(seed)
    name, settings = name_of(steps), TABLES_SETTINGS if has_tables(steps) else SETTINGS
    moments = play(steps, settings, seed)
    for moment in moments:
        for number, disk in enumerate(sample(list(states_of(moment.disk, chosen)), bounds.states, chosen)):
            why = what_is_wrong(settings, moment, disk, chosen.getrandbits(64))
            yield Wrong(name, place_of(moment), number, why) if why else None
    for moment in sample(moments, bounds.second, chosen):
        yield from second_crashes(name, settings, moment, bounds.second_states, chosen)


def second_crashes(
    name: str, settings: Settings, moment: Moment, states: int | None, chosen: random.Random
) -> Iterator[Wrong | None]:
    """The same for each I/O of the recovery from a loss of power, and from a kill of the process."""
    lost = replace(moment, disk=chosen.choice(list(states_of(moment.disk, chosen))), boots=moment.boots + 1)
    killed = replace(moment, disk=moment.disk.with_root(copy.deepcopy(moment.disk.root)))
    for crash, left in (("loss of power", lost), ("kill", killed)):
        for again in recovery_of(settings, left, chosen):
            for number, disk in enumerate(sample(list(states_of(again.disk, chosen)), states, chosen)):
                why = what_is_wrong(settings, again, disk, chosen.getrandbits(64))
                where = f"{place_of(moment)}, a {crash}, and in recovery before {place_of(again)}"
                yield Wrong(name, where, number, why) if why else None


Item = TypeVar("Item")


def sample(items: list[Item], count: int | None, chosen: random.Random) -> list[Item]:
    return items if count is None or count >= len(items) else chosen.sample(items, count)


def place_of(moment: Moment) -> str:
    return f"{moment.operation.name} {moment.operation.path} ({moment.operation.number})"


def play(steps: tuple[Step, ...], settings: Settings, seed: int) -> list[Moment]:
    """Play a scenario on a machine without faults; the moments before each of its I/Os, and the one after all."""

    async def main(loop: VirtualLoop) -> list[Moment]:
        stage = Stage(loop, settings, random.Random(seed))
        with stage.machine:
            await stage.begin()
            for step in steps:
                await step(stage)
            stage.end()
        return stage.moments

    return in_a_world(main)


def recovery_of(settings: Settings, left: Moment, chosen: random.Random) -> list[Moment]:
    """The moments before each I/O of the recovery from what a crash has left."""
    moments: list[Moment] = []

    async def main(loop: VirtualLoop) -> None:
        with revived(loop, settings, left, chosen.getrandbits(64)) as machine:
            machine.disk.before = lambda operation: moments.append(moment_of(machine, operation, left.history))
            await machine.start()

    in_a_world(main)
    return moments


def what_is_wrong(settings: Settings, moment: Moment, disk: LyingDisk, seed: int) -> str:
    """After a loss of power that left this disk, start a broker, read all, and check it against what clients knew.

    Empty if all is well.
    """
    complaints = Complaints()

    async def main(loop: VirtualLoop) -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await come_back(loop)

    async def come_back(loop: VirtualLoop) -> str:
        with revived(loop, settings, replace(moment, disk=disk, boots=moment.boots + 1), seed) as machine:
            found: list[Operation] = [table_of(machine)] if machine.has_tables else []
            await machine.start()
            if machine.failures or not machine.is_up:
                return f"the broker did not start: {machine.failures}"
            if complaints.found:
                return str(complaints.found)
            finals = await read_all(machine)
            if machine.has_tables:
                found.append(await published(machine, sum(len(final.reads) for final in finals)))
            await machine.stop()
        if complaints.found or loop.failures:
            return str([*complaints.found, *loop.failures])
        verdict, findings = check([*moment.history, *found, *finals])
        return "" if verdict is Verdict.VALID else "; ".join(map(str, findings)) or verdict.value

    with listening(complaints):
        try:
            return in_a_world(main)
        except TimeoutError:
            return f"it could not be read within {PATIENCE_SECONDS:.0f} s; {complaints.found}"


def in_a_world(main: Callable[[VirtualLoop], Coroutine[Any, Any, Done]]) -> Done:
    """Run `main` on a loop of its own, where plain tables are merged early."""
    loop = VirtualLoop()
    gc.disable()
    try:
        with mock.patch.object(compaction, "MANY_FILES", MERGED_FILES):
            return loop.run(main(loop))
    finally:
        gc.enable()
        loop.close()


def revived(loop: VirtualLoop, settings: Settings, left: Moment, seed: int) -> Machine:
    """The machine after a crash, with what that has left."""
    loop.now = left.time
    machine = Machine(loop, settings, random.Random(seed), Coverage())
    machine.disk = left.disk
    machine.contents = copy.deepcopy(left.contents)
    machine.boots = left.boots
    return machine


async def read_all(machine: Machine) -> list[Final]:
    """Each partition from its start to its end."""
    life = Life("final")
    finals: list[Final] = []
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


def table_of(machine: Machine) -> Snapshot:
    """What the plain table holds now."""
    return Snapshot("+".join(TOPICS), machine.loop.now, rows_of(machine.disk, DIRECTORY / "plain" / TABLE))


async def published(machine: Machine, messages: int) -> Snapshot:
    """The plain table when it holds all messages; as it is if that never comes."""
    for _ in range(PUBLISH_TRIES):
        if len(table_of(machine).reads) == messages:
            break
        await asyncio.sleep(1)
    return table_of(machine)
