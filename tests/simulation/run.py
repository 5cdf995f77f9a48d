"""One simulation: a machine, its clients and its faults, all from one seed; then checker and `verify`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import io
import logging
import random
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

from faircopy.broker import broker
from faircopy.errors import FaircopyError
from faircopy.publish import compaction
from faircopy.settings.table import Settings
from faircopy.storage.failures import StorageFailure, WriteFailure
from tests.checker.check import Checked, check
from tests.checker.history import Operation, write_history
from tests.simulation.arbiter import SimulatedArbiter
from tests.simulation.coverage import Coverage, watched
from tests.simulation.faults import STORMS, Faults
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import STEADY_NOTE_INTERVAL_MS, Machine
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS
from tests.simulation.quiet import ensure_quiet
from tests.simulation.threads import slower_than_the_network
from tests.simulation.verification import findings_of
from tests.simulation.workload import Workload

STORM_SECONDS = 60.0
SETTLE_SECONDS = TRANSACTION_TIMEOUT_MS / 1000 + 5
LIMIT_SECONDS = 600.0  # a run takes some 100
PUBLISH_TRIES = 120
MERGED_FILES = 4  # instead of 64, which would take hours
SLOW_DISK_CHANCE = 0.25
DURABLE_ACKS_CHANCE = 0.3
TABLES_CHANCE = 0.25  # they take more time than everything else


class Outcome(NamedTuple):
    """The outcome of a seed. `failures` are bugs that showed without the checker."""

    seed: int
    checked: Checked
    failures: list[str]
    history: list[Operation]
    coverage: Coverage
    virtual_seconds: float
    has_arbiter: bool = False

    @property
    def is_good(self) -> bool:
        return not self.failures and self.checked.verdict.value == "valid"

    @property
    def digest(self) -> str:
        """A digest that is equal for equal histories."""
        file = io.StringIO()
        write_history(self.history, file)
        return hashlib.sha256(file.getvalue().encode()).hexdigest()


class Complaints(logging.Handler):
    """Collects what the broker logs about its own bugs: errors with a trace that no disk fault explains."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "is stopped" in record.getMessage() and not is_about_writing(record):
            self.found.append(record.getMessage())  # a damaged partition, which none of our faults may cause
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (FaircopyError, OSError)):
            self.found.append(f"{record.getMessage()}: {error!r}")


@contextlib.contextmanager
def listening(complaints: Complaints) -> Iterator[None]:
    """Listen to the broker's log."""
    logger = logging.getLogger("faircopy")
    logger.addHandler(complaints)
    try:
        yield
    finally:
        logger.removeHandler(complaints)


def transactional_ack_of(seed: int) -> str:
    """What the ack of a draft means in the run of this seed."""
    return "durable" if random.Random(-1 - seed).random() < DURABLE_ACKS_CHANCE else "written"


def settings_of(chosen: random.Random, transactional_ack: str) -> Settings:
    """Settings of a broker with small segments, so that rare events happen often."""
    return Settings(
        transactional_ack=transactional_ack,
        durability=chosen.choice(["fsync", "fsync", "os"]),
        metadata_journals=3,
        offsets_partitions=3,
        shards=chosen.choice([1, 3]),
        journal_segment_bytes=chosen.choice([4_000, 20_000, 1 << 20]),
        checkpoint_bytes=chosen.choice([2_000, 20_000, 1 << 20]),
        checkpoint_interval_ms=chosen.choice([1_000, 5_000, 60_000]),
        recent_drafts_max_bytes=chosen.choice([0, 500, 1 << 20]),
        retention_check_interval_ms=2_000,
        offsets_retention_check_interval_ms=5_000,
        topic_segment_bytes=chosen.choice([2_000, 1 << 20]),
        auto_create_topics=False,
        disk_reserve_bytes=chosen.choice([0, 30_000]),
        plain_enabled=chosen.random() < TABLES_CHANCE,
        plain_interval_ms=chosen.choice([1_000, 4_000]),
        plain_grace_ms=20_000,
        producer_id_block=2,
        transactional_id_expiration_ms=chosen.choice([3_000, 604_800_000]),
    )


def has_slow_disk(seed: int) -> bool:
    """Whether the disk is slower than the network in the run of this seed."""
    return random.Random(~seed).random() < SLOW_DISK_CHANCE


def simulate(seed: int, *, has_arbiter: bool = False) -> Outcome:
    """Run one seed. The same seed gives the same run. With an arbiter, the broker is a replica set of one."""
    loop, coverage, complaints = VirtualLoop(), Coverage(), Complaints()
    # Garbage collection would end remains of dead brokers at moments that depend on this process's memory.
    gc.disable()
    try:
        with (
            watched(coverage),
            listening(complaints),
            mock.patch.object(compaction, "MANY_FILES", MERGED_FILES),
            mock.patch.object(broker, "STEADY_NOTE_INTERVAL_MS", STEADY_NOTE_INTERVAL_MS),
            slower_than_the_network() if has_slow_disk(seed) else contextlib.nullcontext(),
        ):
            machine, outcome = loop.run(_simulate(seed, loop, coverage, complaints, has_arbiter=has_arbiter))
            machine.bury()
            gc.collect()
    finally:
        gc.enable()
        loop.close()
    if not outcome.failures:  # otherwise its broker may have ended in the middle of something
        outcome.failures.extend(findings_of(machine))
    return outcome


async def _simulate(
    seed: int, loop: VirtualLoop, coverage: Coverage, complaints: Complaints, *, has_arbiter: bool
) -> tuple[Machine, Outcome]:
    chosen = random.Random(seed)
    settings = settings_of(chosen, transactional_ack_of(seed))
    failures: list[str] = []
    arbiter = SimulatedArbiter(loop, random.Random(f"arbiter {seed}"), coverage) if has_arbiter else None
    with Machine(loop, settings, chosen, coverage, arbiter) as machine:
        workload = Workload(loop, machine, random.Random(chosen.getrandbits(64)), coverage)
        faults = Faults(
            machine,
            random.Random(chosen.getrandbits(64)),
            coverage,
            chosen.choice(STORMS),
            may_lose_power=settings.durability == "fsync",
        )
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await _storm(machine, workload, faults)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
        failures += machine.differences
        failures += arbiter.violations if arbiter is not None else []
    failures += complaints.found + [text_of(failure) for failure in loop.failures if not is_of_disk(failure)]
    history = workload.history()
    return machine, Outcome(seed, check(history), failures, history, coverage, loop.now, has_arbiter)


async def _storm(machine: Machine, workload: Workload, faults: Faults) -> None:
    await machine.start()
    if machine.broker is None:
        raise machine.failures[0]
    await workload.start()
    machine.weather.worsen()
    if machine.arbiter is not None:
        machine.arbiter.worsen()
    storm = asyncio.create_task(faults.run())
    restarts = asyncio.create_task(faults.begin_anew() if machine.arbiter is not None else asyncio.sleep(0))
    await asyncio.sleep(STORM_SECONDS)
    faults.stop()
    await storm
    await faults.heal()
    await workload.stop()
    # Timeouts abort whatever still hangs.
    await asyncio.sleep(SETTLE_SECONDS)
    if machine.broker is not None:
        await ensure_quiet(machine.broker)
    await workload.read_all()
    await workload.outlive_all()
    if machine.has_tables:
        await _publish_all(workload)
    faults.end()
    await restarts
    await machine.stop()


async def _publish_all(workload: Workload) -> None:
    """Wait until the table holds everything in the logs."""
    for _ in range(PUBLISH_TRIES):
        await asyncio.sleep(1)
        if workload.look_at_table() == workload.messages:
            return
    raise AssertionError(f"the plain table has {workload.look_at_table()} rows, the logs {workload.messages}")


def is_about_writing(record: logging.LogRecord) -> bool:
    """Whether a record reports a failed write, which ends the broker (I10)."""
    return isinstance(record.args, tuple) and any(isinstance(each, WriteFailure) for each in record.args)


def is_of_disk(failure: dict[str, Any]) -> bool:
    """Whether the loop was told of a disk error, which ends the broker (I10)."""
    return isinstance(failure.get("exception"), StorageFailure)


def text_of(failure: dict[str, Any]) -> str:
    return f"{failure['message']}: {failure.get('exception')!r}"
