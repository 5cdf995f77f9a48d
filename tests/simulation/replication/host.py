"""A machine of a world of replicas: its disk, and the one process that runs on it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from faircopy.storage.disk_pool import DiskPool
from tests.simulation.aftermath import Fate
from tests.simulation.coverage import Coverage
from tests.simulation.here import on
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import Crash, LyingDisk
from tests.simulation.switch import Switch
from tests.simulation.threads import SimulatedThreads

JOURNALS = Path("/data/journal")
DISK_THREADS = 4

Process = Callable[["Host"], Coroutine[Any, Any, None]]


class Host:
    """`process` makes what runs in each life. `number` is that of the machine, from 0. `incarnation` counts
    its lives. `has_lost_power`: since then, nobody has opened all of its journals. `failures` get what ended
    a process that should have gone on.
    """

    def __init__(
        self,
        number: int,
        loop: VirtualLoop,
        switch: Switch,
        chosen: random.Random,
        coverage: Coverage,
        failures: list[str],
    ) -> None:
        self.number = number
        self.loop = loop
        self.switch = switch
        self.chosen = chosen
        self.coverage = coverage
        self.incarnation = 0
        self.has_lost_power = False
        self.life = Life("before the first process")
        self.disk = LyingDisk(lambda: int(loop.now * 1e9))
        for path in reversed([JOURNALS, *JOURNALS.parents][:-1]):
            self.disk.make_directory(path)
            self.disk.sync_directory(path.parent)
        self._failures = failures

    def begin(self, process: Process) -> None:
        """Begin a process, in a life of its own."""
        self.incarnation += 1
        with on(self):
            self.life = Life(f"process {self.incarnation} on machine {self.number}")
        self.switch.begin(self.number, self.life)
        self.loop.create_task(process(self), context=self.life.context).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if not self.life.is_over and not isinstance(error, Crash):
            self._failures.append(f"the process on machine {self.number} has ended: {error!r}")

    def threads(self) -> DiskPool:
        """The disk threads of a process."""
        return SimulatedThreads(self.loop, DISK_THREADS, self.chosen, is_slow=self.chosen.random() < 0.2)

    def kill(self) -> None:
        """End the process. What it has written stays."""
        self.life.end()
        self.disk = self.disk.kill()

    def lose_power(self, fate: Fate) -> None:
        """End everything on the machine. What was not synced has this fate."""
        self.life.end(silently=True)
        self.disk = self.disk.crash(fate, self.chosen)
        self.has_lost_power = True
