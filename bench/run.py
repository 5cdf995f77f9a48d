"""One run: start the systems, check them, measure them. It reports failures, and does the rest."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from confluent_kafka import KafkaException

from bench import floors
from bench.measures import (
    abort_cost,
    growth,
    kafka_tools,
    latency,
    plain_tables,
    replica_sets,
    spark_sink,
    spark_source,
    stall,
    start,
    throughput,
)
from bench.profile import Profile, SetsPlan
from bench.protocols.correctness import check
from bench.results import Floor, Results, Skipped
from bench.systems.cache import Unavailable
from bench.systems.choice import any_factory_of, factory_of
from bench.systems.system import Peer, Served
from faircopy.errors import FaircopyError

log = logging.getLogger(__name__)

Progress = Callable[[str], None]
Kind = TypeVar("Kind", bound=Served)
Step = Callable[[str, Callable[[Progress], None]], None]
WARM_UP_CASES = [throughput.Case(throughput.WITHOUT_TRANSACTIONS, 1 << 10), throughput.Case(10, 100)]
WARM_UP_BYTES_MAX = 500_000_000
WARM_UP_CELL = latency.Cell(4, 1)
SYSTEMS = "systems"
OF_RUNNING_SYSTEMS = {"latency", "stall", "aborts", "throughput"}
REQUIRE_ALL = "FAIRCOPY_REQUIRE_ALL"
FAILURES = (FaircopyError, KafkaException, OSError, RuntimeError, TimeoutError)


class Run:
    """A run of a profile, in a directory of its own. `results` grows from step to step."""

    def __init__(self, profile: Profile, results: Results, directory: Path, seed: int) -> None:
        self.results = results
        self.has_failed = False
        self._profile = profile
        self._directory = directory
        self._seed = seed
        self._started: list[Served] = []
        self._peers: dict[str, Peer] = {}

    def steps(self) -> Iterator[tuple[str, Callable[[Progress], None]]]:
        """The steps of the run, in order, with their names."""
        yield "floors", lambda _progress: self.results.floors.extend(floors.measure(self._directory))
        yield "starts", self._start
        if self._profile.growth is not None:
            yield "growth", self._growth
        if self._profile.spark is not None:
            yield "Spark", self._spark
        if self._profile.plain is not None:
            yield "plain tables", self._plain
        if self._profile.tools is not None:
            yield "tools", self._tools
        if self._profile.sets is not None:
            yield "sets", self._sets
        yield SYSTEMS, self._start_all
        yield "latency", self._latency
        yield "stall", self._stall
        yield "aborts", self._aborts
        yield "throughput", self._throughput

    def do(self, name: str, step: Callable[[Progress], None], progress: Progress) -> None:
        """One step. If it fails, the results say so."""
        # Data that the step before left unwritten would delay this one's fdatasyncs.
        os.sync()
        try:
            step(progress)
        except Unavailable as error:
            self._cannot_be_had(name, error)
        except FAILURES as error:
            self._fail(name, error)

    def _fail(self, what: str, error: BaseException) -> None:
        self.has_failed = True
        log.error("%s failed", what, exc_info=error)
        self._skip(what, f"failed: {error}")

    def _skip(self, what: str, why: str) -> None:
        skipped = Skipped(what, why)
        if skipped not in self.results.skipped:
            self.results.skipped.append(skipped)

    def _cannot_be_had(self, what: str, error: Unavailable) -> None:
        """A peer is missing on this machine, which is not a failure unless everything is required."""
        self.has_failed |= os.environ.get(REQUIRE_ALL) == "1"
        self._skip(what, str(error))

    # -- systems ---------------------------------------------------------------------------------------------

    def _start_all(self, progress: Progress) -> None:
        """Start every system, warm it up, and keep only the ones that pass the check."""
        for name in self._profile.systems:
            progress(name)
            place = self._directory / name.replace(" ", "-")
            peer = self._ready(f"system {name}", factory_of(name), place, self._warm_up)
            if peer is not None:
                self._peers[name] = peer

    def _warm_up(self, peer: Peer) -> None:
        for case in WARM_UP_CASES:
            throughput.run(peer, case, self._profile.warm_up_seconds, WARM_UP_BYTES_MAX)
        latency.warm_up(peer, WARM_UP_CELL, self._profile.warm_up_seconds)

    def _ready(
        self, what: str, factory: Callable[[Path], Kind], place: Path, warm_up: Callable[[Kind], None]
    ) -> Kind | None:
        """A system that is started, checked and warm; None if it is missing or fails, which the results say
        of `what`.
        """
        try:
            system = factory(place)
        except Unavailable as error:
            self._cannot_be_had(what, error)
            return None
        self._started.append(system)  # before it is started, so that ending this run also ends it
        try:
            system.start()
            check(system.address, self._seed, may_abort=not system.about.name.startswith("none"))
            warm_up(system)
        except FAILURES as error:
            self._fail(what, error)
            system.stop()
            return None
        if system.about not in self.results.systems:
            self.results.systems.append(system.about)
        return system

    def _running(self, names: Iterable[str]) -> list[Peer]:
        return [self._peers[name] for name in names if name in self._peers]

    def stop(self) -> None:
        """End all running systems."""
        for system in self._started:
            with contextlib.suppress(*FAILURES):
                system.stop()
        self._started.clear()
        self._peers.clear()

    def _factories(self, names: Iterable[str]) -> dict[str, Callable[[Path], Peer]]:
        """The systems that are available."""
        factories = {}
        for name in names:
            try:
                place = self._directory / "probe"
                place.mkdir(exist_ok=True)
                factory_of(name)(place)
                factories[name] = factory_of(name)
            except Unavailable as error:
                self._cannot_be_had(f"starts of system {name}", error)
        return factories

    # -- measures --------------------------------------------------------------------------------------------

    def _start(self, progress: Progress) -> None:
        plan = self._profile.start
        factories = self._factories(plan.systems)
        self.results.add(*start.measure(self._directory, factories, plan.rounds, plan.load_seconds, progress))

    def _growth(self, progress: Progress) -> None:
        plan = self._profile.growth
        assert plan is not None
        factories = self._factories(plan.systems)
        rows, skipped = growth.measure(self._directory, factories, plan.sizes, plan.seconds, progress)
        self.results.add(*rows)
        self.results.skipped.extend(skipped)

    def _spark(self, progress: Progress) -> None:
        plan = self._profile.spark
        assert plan is not None
        place = self._directory / "spark"
        place.mkdir()
        self.results.add(*spark_source.measure(place, plan.rows, plan.live_seconds, plan.rounds, progress))
        self.results.add(*spark_sink.measure(place / "sink", plan.written, plan.rounds, progress))

    def _plain(self, progress: Progress) -> None:
        plan = self._profile.plain
        assert plan is not None
        self.results.add(
            *plain_tables.measure(self._directory, plan.publications, plan.topics, plan.seconds, progress)
        )

    def _tools(self, progress: Progress) -> None:
        plan = self._profile.tools
        assert plan is not None
        factories = [factory_of(name) for name in plan.systems]
        self.results.add(*kafka_tools.measure(self._directory, factories, plan.work, progress))

    def _sets(self, progress: Progress) -> None:
        plan = self._profile.sets
        assert plan is not None
        with TemporaryDirectory(prefix="sets-", dir=self._directory) as place:
            try:
                self.results.add(*self._of_sets(plan, Path(place), progress))
            finally:
                self.stop()

    def _of_sets(self, plan: SetsPlan, place: Path, progress: Progress) -> list[replica_sets.Row]:
        def warm_up(system: Served) -> None:
            replica_sets.warm_up(system, plan.warm_up)

        systems = []
        for name in plan.systems:
            progress(name)
            directory = place / name.replace(" ", "-")
            system = self._ready(f"sets: {name}", any_factory_of(name), directory, warm_up)
            if system is not None:
                systems.append(system)
        return replica_sets.measure(systems, plan.work, plan.rounds, progress)

    def _latency(self, progress: Progress) -> None:
        plan = self._profile.latency
        cells = dict.fromkeys(self._profile.systems, plan.cells) | dict.fromkeys(
            self._profile.rivals, plan.rival_cells
        )
        peers = self._running(self._profile.systems)
        samples: list[Floor] = []

        def measure_floors() -> None:
            progress("floors")
            samples.extend(floors.measure_times(self._directory))

        rows = latency.measure(peers, cells, plan.rounds, plan.seconds, progress, measure_floors)
        self.results.add(*rows)
        # The floors that count for commits are those of the same minutes.
        of_these = floors.medians(samples)
        names = {floor.name for floor in of_these}
        self.results.floors = of_these + [floor for floor in self.results.floors if floor.name not in names]

    def _stall(self, progress: Progress) -> None:
        plan = self._profile.stall
        self.results.add(*stall.measure(self._running(plan.systems), plan.spans, progress))

    def _aborts(self, progress: Progress) -> None:
        plan = self._profile.aborts
        rows = abort_cost.measure(
            self._running(plan.systems),
            plan.percents,
            plan.messages,
            plan.message_bytes,
            plan.rounds,
            self._seed,
            progress,
        )
        self.results.add(*rows)

    def _throughput(self, progress: Progress) -> None:
        plan = self._profile.throughput
        cases = dict.fromkeys(self._profile.systems, plan.cases) | dict.fromkeys(
            self._profile.rivals, plan.rival_cases
        )
        peers = self._running(self._profile.systems)
        self.results.add(
            *throughput.measure(peers, cases, plan.rounds, plan.seconds, plan.bytes_max, progress)
        )
