"""The parts of a broker that handlers work with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from faircopy.catalogue.dynamic_settings import DynamicSettings
from faircopy.catalogue.journal import CatalogueJournal
from faircopy.catalogue.producer_ids import ProducerIds
from faircopy.hosting.administration import TopicAdministration
from faircopy.hosting.cuts import Cuts
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.plain_tables import PlainTables
from faircopy.hosting.recovery_summary import RecoverySummary
from faircopy.hosting.snapshots import Snapshots
from faircopy.journal.draft_space import DraftSpace
from faircopy.journal.identity import TopicIdPartition
from faircopy.loop.stall_watch import StallWatch
from faircopy.net.server import Server
from faircopy.partition.name import PartitionName
from faircopy.serving.large_requests import LargeRequests
from faircopy.settings.table import Settings
from faircopy.shard.shards import Shards
from faircopy.storage.clock import Clock
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.disk_pool import DiskPool


class ReplicaSet(Protocol):
    """What people may see of who lets the broker lead."""

    def about(self) -> dict[str, Any]:
        """Figures; none without an arbiter."""

    async def replicas(self) -> dict[str, Any] | None:
        """The state of the replica set; None if there is none."""


class Parts(Protocol):
    """A broker, as its handlers see it. `ready_ms` is when it started to serve, by the monotonic clock.
    `time_searches` limits the number of concurrent searches by time.
    """

    administration: TopicAdministration
    hosted: HostedTopics
    catalogue: CatalogueJournal
    cluster_id: str
    cuts: Cuts
    directory: DataDirectory
    disk: DiskPool
    draft_space: DraftSpace
    dynamic_settings: DynamicSettings
    incarnation: int
    large_requests: LargeRequests
    loop: asyncio.AbstractEventLoop
    plain_tables: PlainTables
    producer_ids: ProducerIds
    ready_ms: float
    recovery: RecoverySummary
    server: Server
    settings: Settings
    shards: Shards
    snapshots: Snapshots
    stalls: StallWatch
    time_searches: asyncio.Semaphore

    @property
    def advertised(self) -> Mapping[int, range]:
        """The advertised versions, by API key."""

    @property
    def leadership(self) -> ReplicaSet:
        """Who lets the broker lead."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    def name_of(self, partition: TopicIdPartition) -> PartitionName | None:
        """A partition's name, also for group offsets. None if its topic is deleted."""
