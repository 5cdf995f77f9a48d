"""Parallel prepare, as in Redpanda's RFC of 2020-11-17: markers, with one durable write of delay.

Messages are acked before they are durable. PREPARE makes that safe: on commit it goes to the coordinator and
to all partitions at the same time, and the ack comes when all have it durably. Then the markers are written.
The fold and the view of readers are those of `markers`; the coordinator is faircopy's own, except that the
next transaction waits for the markers.
"""

from __future__ import annotations

from bench.protocols.marked_partition import MarkedPartition
from bench.protocols.markers import MarkersBroker, PatientCoordinator
from faircopy.partition.participant import Done


class PreparedPartition(MarkedPartition):
    """Acks what is written, and leaves the fdatasync to PREPARE."""

    def _copy_when_durable(self, copy: Done) -> None:
        self.journal.when_durable_without_sync(copy)

    def _when_acked(self, ack: Done) -> None:
        self.journal.when_kept(ack)


class ParallelPrepareBroker(MarkersBroker):
    """A broker with markers in its logs, which prepares in parallel."""

    partition_type = PreparedPartition
    coordinator_type = PatientCoordinator
