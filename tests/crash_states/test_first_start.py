"""The first start of a data directory may crash at any of its I/Os: the next one founds it, or goes on with
what is founded.
"""

from __future__ import annotations

import random

import pytest

from tests.crash_states.stage import SETTINGS, Moment, moment_of
from tests.crash_states.states import states_of
from tests.crash_states.sweep import a_remote, in_a_world, killed, place_of, revived, sample, without_power
from tests.crash_states.topics import NO_ID, KnownTopic, described, wrong_topics
from tests.simulation.coverage import Coverage
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import Operation as DiskOperation
from tests.simulation.machine import Machine

STATES = 3


def first_start() -> tuple[list[Moment], str]:
    """The moments before each I/O of a first start and the one after it, and the id of the new cluster."""
    moments: list[Moment] = []

    async def main(loop: VirtualLoop) -> str:
        with Machine(loop, SETTINGS, random.Random(1), Coverage()) as machine:

            def before(operation: DiskOperation) -> None:
                moments.append(moment_of(machine, operation, []))

            machine.disk.before = before
            await machine.start()
            before(DiskOperation(0, "the end", machine.directory))
            assert machine.broker is not None
            return machine.broker.cluster_id

    return moments, in_a_world(main)


def start_after(left: Moment) -> str:
    """Start on what a crash has left, make a topic, use it, and stop. Returns the id of the cluster."""

    async def main(loop: VirtualLoop) -> str:
        with revived(loop, SETTINGS, left, seed=2) as machine:
            await machine.start()
            assert machine.broker is not None, machine.failures
            cluster_id = machine.broker.cluster_id
            assert await described(a_remote(machine), "c") == (None, 0)
            known = KnownTopic("c", former=frozenset({NO_ID}))
            assert not await wrong_topics(machine, a_remote(machine), (known,))
            await machine.stop()
        assert not machine.differences
        return cluster_id

    return in_a_world(main)


@pytest.mark.parametrize("crash", ["kill", "loss of power"])
def test_a_first_start_may_crash_anywhere(crash: str) -> None:
    chosen = random.Random(1)
    moments, cluster_id = first_start()
    assert len(moments) > 20
    for moment in moments:
        if crash == "kill":
            states = [killed(moment)]
        else:
            disks = sample(list(states_of(moment.disk, chosen)), STATES, chosen)
            states = [without_power(SETTINGS, moment, disk) for disk in disks]
        for state in states:
            found = start_after(state)
            assert found == cluster_id or moment is not moments[-1], place_of(moment)
