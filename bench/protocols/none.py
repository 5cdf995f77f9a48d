"""No transaction: the same requests of the same client, but the broker runs no transaction. A floor, not a
protocol.

Messages of a transaction are appended as plain ones; the requests that begin and end it are acked at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.broker.broker import Broker
from faircopy.journal.entry import TransactionId
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.partition import Appended, Partition
from faircopy.storage.system import Buffer
from faircopy.transactions.connections import Sent
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.wire.batch import BatchHeader
from faircopy.wire.error_codes import ErrorCode


class PlainPartition(HostedPartition):
    """Takes every batch as a plain one."""

    def append_draft(
        self,
        batch: Buffer,
        header: BatchHeader | None,
        records: int,
        transaction: TransactionId,
        done: Appended,
        *,
        may_begin: bool = False,
    ) -> None:
        self.append_plain(batch, header, records, done, may_begin=may_begin)


class NoCoordinator(TransactionCoordinator):
    """Agrees to everything."""

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        for partition in partitions:
            partition.open_transaction(
                TransactionId(producer_id, epoch, 0), transactional_id, is_durable=False
            )

    async def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        sent: Sent,
        fenced: ErrorCode,
    ) -> None:
        """Nothing is decided, and nothing undone."""


class NoneBroker(Broker):
    """A broker without transactions, whose clients see no difference until they abort."""

    partition_type = PlainPartition
    coordinator_type = NoCoordinator
