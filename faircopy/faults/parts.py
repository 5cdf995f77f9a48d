"""A broker, as its faults see it."""

from __future__ import annotations

from typing import Protocol

from faircopy.faults.plan import FaultPlan
from faircopy.serving.parts import Parts
from faircopy.storage.disk_for_tests import DiskForTests


class FaultyParts(Parts, Protocol):
    """The parts of a broker in which things go wrong on request."""

    fault_plan: FaultPlan
    full_disk: DiskForTests

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""

    async def look_for_space(self) -> None:
        """Look at the disk now."""
