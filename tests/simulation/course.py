"""The course of one machine: a storm of faults while clients work, then calm, and an orderly end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

from faircopy.settings.table import Settings
from tests.checker.check import check
from tests.checker.history import Operation
from tests.simulation.arbiter import SimulatedArbiter
from tests.simulation.complaints import Complaints, failures_on
from tests.simulation.coverage import Coverage
from tests.simulation.faults import STORMS, Faults
from tests.simulation.here import on
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine
from tests.simulation.outcome import Outcome
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS
from tests.simulation.quiet import ensure_quiet
from tests.simulation.traits import has_slow_disk, settings_of, transactional_ack_of
from tests.simulation.transitions import announce_transitions
from tests.simulation.workload import Workload

STORM_SECONDS = 60.0
SETTLE_SECONDS = TRANSACTION_TIMEOUT_MS / 1000 + 5
LIMIT_SECONDS = 600.0  # a run takes some 100
PUBLISH_TRIES = 120


class Course:
    """All that happens on the machine of a seed. All its chance comes from there.

    While it `has_storm`, others may cause faults, too. `is_calm` is set when the machine runs with all it
    needs, or has failed.
    """

    def __init__(
        self,
        seed: int,
        loop: VirtualLoop,
        *,
        has_arbiter: bool = False,
        storm_seconds: float = STORM_SECONDS,
    ) -> None:
        self._seed = seed
        self._storm_seconds = storm_seconds
        self._loop = loop
        self._has_arbiter = has_arbiter
        self._coverage = Coverage()
        announce_transitions(self._coverage)
        self._chosen = random.Random(seed)
        self.settings = self._settings()
        self.may_lose_power = self.settings.durability == "fsync"
        self.machine = self._new_machine()
        self._faults: Faults | None = None
        self.has_storm = False
        self.is_calm = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failures: list[str] = []
        self._history: list[Operation] = []
        self._first_machine = self.machine
        self._ended = 0.0

    # -- what may be otherwise in a set of several replicas --------------------------------------------------

    def _settings(self) -> Settings:
        return settings_of(self._chosen, transactional_ack_of(self._seed))

    def _new_machine(self) -> Machine:
        slow = has_slow_disk(self._seed)
        return Machine(self._loop, self.settings, self._chosen, self._coverage, has_slow_disk=slow)

    def _arbiter(self) -> SimulatedArbiter | None:
        chosen = random.Random(f"arbiter {self._seed}")
        return SimulatedArbiter(self._loop, chosen, self._coverage) if self._has_arbiter else None

    async def _calm_down(self, faults: Faults, workload: Workload) -> None:
        """The storm is over: let the machine run with all it needs. Clients work."""
        await faults.heal()

    async def _settle(self, workload: Workload) -> None:
        """Clients have finished, and so has the broker."""

    async def _outlive(self, workload: Workload) -> None:
        """The broker has stopped in order."""

    # -- all of it -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all of it. Nothing of it goes on afterwards, whatever went wrong."""
        with self.machine as machine:
            machine.arbiter = self._arbiter()
            workload = Workload(
                self._loop, machine, random.Random(self._chosen.getrandbits(64)), self._coverage
            )
            try:
                async with asyncio.timeout(LIMIT_SECONDS):
                    await self._live(workload)
            except Exception as error:
                self._failures.append(f"{type(error).__name__}: {error}")
            self.is_calm.set()
            for task in (*self._tasks, *workload.tasks):
                task.cancel()
        self._history = workload.history()
        self._ended = self._loop.now

    async def come_back(self) -> None:
        """Start the broker, unless it runs: somebody else has ended it."""
        with on(self.machine):
            assert self._faults is not None, "faults come once the machine's own have begun"
            await self._faults.come_back()

    def outcome(self, complaints: Complaints) -> Outcome:
        """What came of it. To be asked before remains of dead brokers are collected, since these complain."""
        machine = self._first_machine
        failures = [*self._failures, *machine.differences]
        failures += machine.arbiter.violations if machine.arbiter is not None else []
        failures += complaints.about(machine) + failures_on(machine, self._loop.failures)
        return Outcome(
            self._seed,
            check(self._history),
            failures,
            self._history,
            self._coverage,
            self._ended,
            self._has_arbiter,
        )

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def _live(self, workload: Workload) -> None:
        machine = self.machine
        self._faults = faults = Faults(
            machine,
            random.Random(self._chosen.getrandbits(64)),
            self._coverage,
            self._chosen.choice(STORMS),
            may_lose_power=self.may_lose_power,
        )
        await machine.start()
        if machine.broker is None:
            raise machine.failures[0]
        await workload.start()
        machine.weather.worsen()
        if machine.arbiter is not None:
            machine.arbiter.worsen()
        self.has_storm = True
        storm = self._begin(faults.run())
        restarts = self._begin(faults.begin_anew() if machine.arbiter is not None else asyncio.sleep(0))
        await asyncio.sleep(self._storm_seconds)
        faults.stop()
        self.has_storm = False
        await storm
        await self._calm_down(faults, workload)
        machine = self.machine
        self.is_calm.set()
        await workload.stop()
        # Timeouts abort whatever still hangs.
        await asyncio.sleep(SETTLE_SECONDS)
        if machine.broker is not None:
            await ensure_quiet(machine.broker)
        await workload.read_all()
        await workload.outlive_all()
        if machine.has_tables:
            await _publish_all(workload)
        await self._settle(workload)
        faults.end()
        await restarts
        with on(machine):
            await machine.stop()
        await self._outlive(workload)


async def _publish_all(workload: Workload) -> None:
    """Wait until the table holds everything in the logs."""
    for _ in range(PUBLISH_TRIES):
        await asyncio.sleep(1)
        if workload.look_at_table() == workload.messages:
            return
    raise AssertionError(f"the plain table has {workload.look_at_table()} rows, the logs {workload.messages}")
