"""Markers, as in Kafka (KIP-98): messages go straight into the log, a control batch ends each transaction.

The partition is `MarkedPartition`; `read_committed` defines what readers get. Coordinator: partitions are
added durably, every message is acked when it is durable, then PREPARE_COMMIT, then the ack, then the markers.
The producer's next transaction waits for them, since a marker names a producer, not a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from bench.protocols.marked_partition import MarkedPartition
from bench.protocols.read_committed import ROUTES_OF_MARKERS
from faircopy.broker.broker import Broker
from faircopy.partition.partition import Partition
from faircopy.transactions.commits import Commits
from faircopy.transactions.connections import Sent
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.transaction import BranchId, Transaction
from faircopy.wire.error_codes import ErrorCode


class PatientCoordinator(TransactionCoordinator):
    """Begins a producer's next transaction when all markers of the last are written."""

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        await self._endings.all_over(self.journal_of(transactional_id), transactional_id)
        await super().add_partitions(transactional_id, producer_id, epoch, partitions, sent, fenced)


class MarkersCommits(Commits):
    """Partitions have nothing to prepare: all of their batches are durable."""

    def promising(self, transaction: Transaction) -> list[BranchId]:
        return []


class MarkersCoordinator(PatientCoordinator):
    """PREPARE_COMMIT, ack, markers."""

    commits_type = MarkersCommits

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        await super().add_partitions(transactional_id, producer_id, epoch, partitions, sent, fenced)
        await self.journal_of(transactional_id).journal.durable()


class MarkersBroker(Broker):
    """A broker with markers in its logs."""

    partition_type = MarkedPartition
    coordinator_type: ClassVar[type[TransactionCoordinator]] = MarkersCoordinator
    routes = ROUTES_OF_MARKERS
