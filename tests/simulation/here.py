"""Where code runs: on which machine of a world. A context says it, so what begins on a machine goes on there:
its processes, its clients, its faults.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Protocol

from tests.simulation.coverage import Coverage
from tests.simulation.lying_disk import LyingDisk


class Place(Protocol):
    """What code finds on the machine that it runs on."""

    disk: LyingDisk
    coverage: Coverage


_here: contextvars.ContextVar[Place] = contextvars.ContextVar("the machine that code runs on")


def here() -> Place:
    """The machine that the caller runs on. Raises LookupError outside of all machines."""
    return _here.get()


def place_of(context: contextvars.Context) -> Place | None:
    """The machine that code with this context runs on."""
    return context.get(_here)


@contextlib.contextmanager
def on(place: Place) -> Iterator[None]:
    """Run the block on a machine, with all that begins in it."""
    before = _here.set(place)
    try:
        yield
    finally:
        _here.reset(before)
