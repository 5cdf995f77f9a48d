"""The sweep: play a scenario, crash at each I/O of its last step, in each state in which that may leave the
disk, recover, and check.

A loss of power comes before each I/O. A kill also comes between any two buffers of a write, so between any
two entries.

Some recoveries, from a loss of power and from a kill, are repeated with a loss of power before each of their
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

from faircopy.publish import compaction
from faircopy.settings.table import Settings
from faircopy.storage.system import mount
from tests.checker.check import Verdict, check
from tests.checker.history import Final, Loss, Operation, Read, Snapshot
from tests.crash_states.distinct import Met
from tests.crash_states.scenarios import Step, has_tables, name_of
from tests.crash_states.stage import (
    SETTINGS,
    TABLE,
    TABLES_SETTINGS,
    TOPICS,
    Moment,
    Stage,
    Survivor,
    moment_of,
)
from tests.crash_states.states import states_of
from tests.crash_states.topics import wrong_topics
from tests.simulation.complaints import Complaints, listening
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import WITHIN_A_WRITE, LyingDisk
from tests.simulation.lying_disk import Operation as DiskOperation
from tests.simulation.machine import DIRECTORY, Machine
from tests.simulation.network import Remote
from tests.simulation.quiet import miscounted, remembered_in_vain
from tests.simulation.routed_system import RoutedSystem
from tests.simulation.tables import rows_of
from tests.simulation.world import MERGED_FILES

Done = TypeVar("Done")

PARTITIONS = ["a-0", "b-0"]
PUBLISH_TRIES = 20
PATIENCE_SECONDS = 300.0
PROMPT_SECONDS = 5.0


class Wrong(NamedTuple):
    """A crash state from which recovery goes wrong."""

    scenario: str
    crash: str
    state: int
    why: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.crash}, state {self.state}: {self.why}"


class Bounds(NamedTuple):
    """How much to try; None for all.

    `states`: how many states of each crash point. `second`: how many first crashes, of either kind, are
    followed by a second one at each I/O of the recovery. `second_states`: how many states of each second
    crash. `is_slow`: the disk is slower than the network, so that requests come between an entry and its
    write. `is_durable`: with transactional.ack=durable, so that a loss of power takes nothing that was acked.
    """

    states: int | None = None
    second: int = 2
    second_states: int = 3
    is_slow: bool = False
    is_durable: bool = False


def sweep(steps: tuple[Step, ...], seed: int, bounds: Bounds, shards: int = 1) -> Iterator[Wrong | None]:
    """Check the states that the last step of a scenario may leave: earlier ones belong to shorter scenarios.

    Yields an outcome for each state, None if all is well.
    """
    chosen = random.Random(seed)
    name = name_of(steps)
    settings = replace(
        TABLES_SETTINGS if has_tables(steps) else SETTINGS,
        shards=shards,
        transactional_ack="durable" if bounds.is_durable else "written",
    )
    moments = play(steps, settings, seed, has_slow_disk=bounds.is_slow)[-1]
    met = Met()
    for moment in moments:
        if any(met.new("kill", moment, [moment.disk])):
            why = what_is_wrong(settings, killed(moment), chosen.getrandbits(64))
            yield Wrong(name, f"a kill before {place_of(moment)}", 0, why) if why else None
    whole = [moment for moment in moments if moment.operation.name != WITHIN_A_WRITE]
    for moment in whole:
        new = list(met.new("loss of power", moment, states_of(moment.disk, chosen)))
        for number, disk in enumerate(sample(new, bounds.states, chosen)):
            why = what_is_wrong(settings, without_power(settings, moment, disk), chosen.getrandbits(64))
            yield Wrong(name, f"a loss of power before {place_of(moment)}", number, why) if why else None
    for moment in sample(whole, bounds.second, chosen):
        yield from second_crashes(name, settings, moment, bounds.second_states, chosen)


def second_crashes(
    name: str, settings: Settings, moment: Moment, states: int | None, chosen: random.Random
) -> Iterator[Wrong | None]:
    """Crash again at each I/O of the recovery from a loss of power, and of that from a kill."""
    lost = without_power(settings, moment, chosen.choice(list(states_of(moment.disk, chosen))))
    for crash, left in (("loss of power", lost), ("kill", killed(moment))):
        for again in recovery_of(settings, left, chosen):
            for number, disk in enumerate(sample(list(states_of(again.disk, chosen)), states, chosen)):
                lost_again = without_power(settings, again, disk)
                why = what_is_wrong(settings, lost_again, chosen.getrandbits(64))
                where = f"a {crash} before {place_of(moment)}, and in recovery before {place_of(again)}"
                yield Wrong(name, where, number, why) if why else None


def killed(moment: Moment) -> Moment:
    """The moment after the process was killed: everything written is there."""
    return replace(moment, disk=moment.disk.with_root(copy.deepcopy(moment.disk.root)))


def without_power(settings: Settings, moment: Moment, disk: LyingDisk) -> Moment:
    """The moment after a loss of power that left this disk."""
    is_durable = settings.acks_drafts_durably(settings.transactional_ack)
    history = moment.history if is_durable else [*moment.history, Loss(moment.time)]
    return replace(moment, disk=disk, boots=moment.boots + 1, history=history)


Item = TypeVar("Item")


def sample(items: list[Item], count: int | None, chosen: random.Random) -> list[Item]:
    return items if count is None or count >= len(items) else chosen.sample(items, count)


def place_of(moment: Moment) -> str:
    return f"{moment.operation.name} {moment.operation.path} ({moment.operation.number})"


def play(
    steps: tuple[Step, ...], settings: Settings, seed: int, *, has_slow_disk: bool = False
) -> list[list[Moment]]:
    """Play a scenario on a machine without faults. Returns, for each step, the moments before each of its
    I/Os. The very last moment comes after everything.
    """

    async def main(loop: VirtualLoop) -> list[list[Moment]]:
        stage = Stage(loop, settings, random.Random(seed), has_slow_disk=has_slow_disk)
        starts = []
        with stage.machine:
            await stage.begin()
            for step in steps:
                starts.append(len(stage.moments))
                await step(stage)
            stage.end()
        return [stage.moments[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]

    return in_a_world(main)


def recovery_of(settings: Settings, left: Moment, chosen: random.Random) -> list[Moment]:
    """The moments before each I/O of the recovery from a crash, and the one after the last."""
    moments: list[Moment] = []

    async def main(loop: VirtualLoop) -> None:
        with revived(loop, settings, left, chosen.getrandbits(64)) as machine:

            def before(operation: DiskOperation) -> None:
                moments.append(moment_of(machine, operation, left.history, left.survivors, left.topics))

            machine.disk.before = before
            await machine.start()
            before(DiskOperation(0, "the end", machine.directory))

    in_a_world(main)
    return moments


def what_is_wrong(settings: Settings, moment: Moment, seed: int) -> str:
    """Start a broker on what a crash has left, let clients go on, and check all data against their history.

    Returns what is wrong, or an empty string.
    """
    complaints = Complaints()

    async def main(loop: VirtualLoop) -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await come_back(loop)

    async def come_back(loop: VirtualLoop) -> str:
        with revived(loop, settings, moment, seed) as machine:
            found: list[Operation] = [table_of(machine)] if machine.has_tables else []
            await machine.start()
            if machine.failures or not machine.is_up:
                return f"the broker did not start: {machine.failures}"
            if complaints.found:
                return str(complaints.found)
            if broker := machine.broker:
                await loop.create_task(broker.shards.forget_gone(), context=machine.life.context)
                wrong = [*remembered_in_vain(broker), *miscounted(broker)]
                if wrong:
                    return "; ".join(wrong)
            asked = loop.now
            for name in PARTITIONS:
                await a_consumer(machine, name).bound(name, LATEST)
            if loop.now - asked > PROMPT_SECONDS:
                return f"the ends of partitions are not known for {loop.now - asked:.0f} s"
            survived = [await go_on(machine, survivor) for survivor in moment.survivors]
            finals = await read_all(machine)
            if moment.topics:
                wrong = await wrong_topics(machine, a_remote(machine), moment.topics)
                if wrong:
                    return "; ".join(wrong)
            if machine.has_tables:
                messages = sum(len(final.reads) for final in finals)
                if (table := await published(machine, messages)) is None:
                    return f"the plain table does not get to {messages} messages"
                found.append(table)
            await machine.stop()
        if machine.differences:
            return f"state is not the fold of the journals: {'; '.join(machine.differences)}"
        if complaints.found or loop.failures:
            return str([*complaints.found, *loop.failures])
        verdict, findings = check([*moment.history, *survived, *found, *finals])
        return "" if verdict is Verdict.VALID else "; ".join(map(str, findings)) or verdict.value

    with listening(complaints):
        try:
            return in_a_world(main)
        except TimeoutError:
            return f"recovery and reading took more than {PATIENCE_SECONDS:.0f} s; {complaints.found}"


def in_a_world(main: Callable[[VirtualLoop], Coroutine[Any, Any, Done]]) -> Done:
    """Run `main` on a loop of its own, with the disks of its machines; plain tables are merged early."""
    loop = VirtualLoop()
    gc.disable()
    try:
        with mount(RoutedSystem()), mock.patch.object(compaction, "MANY_FILES", MERGED_FILES):
            return loop.run(main(loop))
    finally:
        gc.enable()
        loop.close()


def revived(loop: VirtualLoop, settings: Settings, left: Moment, seed: int) -> Machine:
    """The machine after a crash, with what the crash has left."""
    loop.now = left.time
    machine = Machine(loop, settings, random.Random(seed), Coverage(), has_slow_disk=left.has_slow_disk)
    machine.disk = left.disk
    machine.contents = copy.deepcopy(left.contents)
    machine.boots = left.boots
    return machine


async def read_all(machine: Machine) -> list[Final]:
    """Read each partition from its start to its end."""
    finals: list[Final] = []
    for name in PARTITIONS:
        consumer = a_consumer(machine, name)
        start, end = await consumer.bound(name, EARLIEST), await consumer.bound(name, LATEST)
        consumer.positions[name] = start
        reads: list[Read] = []
        while consumer.positions[name] < end:
            reads += await consumer.poll()
        finals.append(Final(name, start, end, reads))
    return finals


def a_consumer(machine: Machine, name: str) -> SimulatedConsumer:
    """A fresh client that reads a partition."""
    return SimulatedConsumer(a_remote(machine), [name], is_committed=True)


def a_remote(machine: Machine) -> Remote:
    """The connections of a fresh client."""
    life = Life("final")
    return Remote(lambda: machine.connect(life), machine.weather, random.Random(0), Coverage())


async def go_on(machine: Machine, survivor: Survivor) -> Operation:
    """Let a client that outlived the crash do what it still has to do."""
    life = Life("survivor")
    remote = Remote(lambda: machine.connect(life), machine.weather, random.Random(0), Coverage())
    return await survivor.go_on(remote, machine.loop.time)


def table_of(machine: Machine) -> Snapshot:
    """What the plain table holds now."""
    return Snapshot("+".join(TOPICS), machine.loop.now, rows_of(machine.disk, DIRECTORY / "plain" / TABLE))


async def published(machine: Machine, messages: int) -> Snapshot | None:
    """The plain table once it holds all messages; None if it never does."""
    for _ in range(PUBLISH_TRIES):
        table = table_of(machine)
        if len(table.reads) == messages:
            return table
        await asyncio.sleep(1)
    return None
