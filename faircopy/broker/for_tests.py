"""A broker that was started for tests: things go wrong in it on request (`faircopy/faults`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from faircopy.api.routes import ROUTES
from faircopy.broker.broker import Broker
from faircopy.broker.environment import Environment
from faircopy.faults.dispatch import FaultyDispatcher
from faircopy.faults.orders import ROUTE as FAULTS
from faircopy.faults.plan import FaultPlan
from faircopy.faults.producers import ExpiringCoordinator
from faircopy.serving.route import HotRoute, Route
from faircopy.settings.table import Settings
from faircopy.storage.disk_for_tests import DiskForTests
from faircopy.transactions.coordinator import TransactionCoordinator


class BrokerForTests(Broker):
    """A broker with the API Faults. Its files are to be opened on its `full_disk`."""

    coordinator_type: ClassVar[type[TransactionCoordinator]] = ExpiringCoordinator
    dispatcher_type = FaultyDispatcher
    routes: ClassVar[Mapping[int, Route | HotRoute]] = {**ROUTES, FAULTS.schema.api_key: FAULTS}

    def __init__(self, settings: Settings, environment: Environment, full_disk: DiskForTests) -> None:
        """Raises BadSetting."""
        super().__init__(settings, environment)
        self.fault_plan = FaultPlan()
        self.full_disk = full_disk

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        topics = (hosted.topic for hosted in self.hosted.topics.values())
        return next((topic.name for topic in topics if topic.id.bytes == topic_id), None)

    async def look_for_space(self) -> None:
        """Look at the disk now."""
        await self._look_for_space()
