"""A connector that moves what is written at one end to where it is seen, and is disturbed meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bench.systems.cache import Dependency
from tests.broker_process import BrokerProcess
from tests.ecosystem.connect.installed import plugins
from tests.ecosystem.connect.worker import Worker
from tests.ecosystem.outlet import Outlet
from tests.finding import a_finding_if_not
from tests.seeds import seed_for

DELAY_SECONDS_MAX = 0.05
"""After something came out, as more is on its way: a source may sleep for a second when it has read all."""


class Inlet(Protocol):
    """Where something is written, and how much was."""

    @property
    def written(self) -> int:
        """So much."""

    def write(self) -> None:
        """Write some more."""


class Flow:
    """A `broker` and a `worker`, which moves."""

    def __init__(self, broker: BrokerProcess, worker: Worker) -> None:
        self.broker, self.worker = broker, worker
        self._chance = random.Random(seed_for("Kafka Connect is disturbed"))

    def disturbed(
        self, connector: str, source: Inlet, target: Outlet, ahead: int, disturbances: Sequence[Disturbance]
    ) -> None:
        """Call each of them in the middle of the work; then all that was written must come out. At most
        about `ahead` are under way; half as many come out between two of them.
        """

        def meanwhile() -> None:
            self.worker.ensure_it_works(connector)
            if source.written < target.visible + ahead:
                source.write()

        for disturb in disturbances:
            target.until_visible(target.visible + ahead // 2, meanwhile)
            target.during(self._chance.uniform(0, DELAY_SECONDS_MAX), meanwhile)
            disturb()
        with a_finding_if_not():
            target.until_visible(source.written, lambda: self.worker.ensure_it_works(connector))

    def kill_both(self) -> None:
        """The worker comes back while the broker is away."""
        self.broker.kill()
        self.worker.jvm.restart()
        self.broker.start()


Disturbance = Callable[[], None]


@contextmanager
def flowing(directory: Path, connector: Dependency) -> Iterator[Flow]:
    """A broker, and a worker that has this kind of connector."""
    path = plugins(directory, connector)
    with BrokerProcess(directory) as broker, Worker(directory, broker.address, path) as worker:
        yield Flow(broker, worker)
        broker.ensure_no_traceback()
