"""Worlds: machines on one loop, each with a disk, clients and faults of its own.

Strangers are machines that know nothing of each other. Others share calamities; their brokers talk.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from unittest import mock

from faircopy.broker import broker
from faircopy.publish import compaction
from faircopy.storage.system import mount
from tests.simulation.complaints import Complaints, listening
from tests.simulation.course import STORM_SECONDS, Course
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import STEADY_NOTE_INTERVAL_MS
from tests.simulation.outcome import Outcome
from tests.simulation.routed_system import RoutedSystem
from tests.simulation.transitions import watched
from tests.simulation.verification import findings_of

MERGED_FILES = 4  # instead of 64, which would take hours


def simulate_world(
    seeds: Sequence[int], *, has_arbiter: bool = False, storm_seconds: float = STORM_SECONDS
) -> list[Outcome]:
    """Run a machine for each seed, all at once. Returns their outcomes in the order of the seeds.

    A machine's history is the same in any such world. With an arbiter, each broker is a replica set of one.
    """
    loop = VirtualLoop()
    courses = [Course(seed, loop, has_arbiter=has_arbiter, storm_seconds=storm_seconds) for seed in seeds]
    return run_together(loop, courses)


def run_together(
    loop: VirtualLoop, courses: Sequence[Course], beside: Callable[[], Awaitable[None]] | None = None
) -> list[Outcome]:
    """Run these on a new loop, and close it. Returns their outcomes. `beside` runs beside them."""
    complaints = Complaints()
    try:
        with in_process_of_a_world(), listening(complaints):
            loop.run(run_all(courses, beside))
            outcomes = [course.outcome(complaints) for course in courses]
            for course in courses:
                course.machine.bury()
            gc.collect()
    finally:
        loop.close()
    for course, outcome in zip(courses, outcomes, strict=True):
        if not outcome.failures:  # otherwise its broker may have ended in the middle of something
            outcome.failures.extend(findings_of(course.machine))
    return outcomes


async def run_all(courses: Sequence[Course], beside: Callable[[], Awaitable[None]] | None) -> None:
    runs = [course.run() for course in courses]
    await asyncio.gather(*runs, *([beside()] if beside is not None else []))


@contextlib.contextmanager
def in_process_of_a_world() -> Iterator[None]:
    """Make of this process what all machines of a world share."""
    # Garbage collection would end remains of dead brokers at moments that depend on this process's memory.
    gc.disable()
    try:
        with (
            mount(RoutedSystem()),
            watched(),
            mock.patch.object(compaction, "MANY_FILES", MERGED_FILES),
            mock.patch.object(broker, "STEADY_NOTE_INTERVAL_MS", STEADY_NOTE_INTERVAL_MS),
        ):
            yield
    finally:
        gc.enable()
