"""Opening a partition: what a start makes of its checkpoint, its log and its journal.

In this order, so that each step trusts only what an earlier one has found:

1. The checkpoint gives the state as it was stored last (I6), and says where the log ended then.
2. The log is opened at that end. What its files hold after it, the fold writes again, or step 5 drops.
3. The journal finds its segments. Its entries after the checkpoint are read, checked and fsynced.
4. The fold takes each entry into the state, and its effect goes into the log at once.
5. The cut comes last. Only when all is folded, and nothing that was durable is missing, does the log drop
   what the journal does not have; then the journal cuts its torn tail.

So a partition that turns out to be damaged still has all its files as they were found, for a repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faircopy.copier.log_copier import LogCopier
from faircopy.datalog.log import DataLog
from faircopy.errors import FaircopyError
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.partition import Partition
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import Shortage
from faircopy.storage.state_store import StateStore


class PartitionResources(NamedTuple):
    """What all partitions of topics use.

    `steady_ms` is the clock by which segments of logs grow old. `on_damage` is called on the event loop, for
    damage that comes to light when a partition serves.
    """

    store: StateStore
    disk: DiskPool
    loop: asyncio.AbstractEventLoop
    steady_ms: Callable[[], int]
    journal_options: JournalOptions
    partition_type: type[HostedPartition]
    on_damage: Callable[[HostedPartition, FaircopyError], None]


class Unopened(NamedTuple):
    """One partition that is to be opened: who it is, where its files are, and under which epoch it is led."""

    name: PartitionName
    id: TopicIdPartition
    journal_path: Path
    log_path: Path
    log_segment_bytes: int
    leader_epoch: int


def open_partition(unopened: Unopened, resources: PartitionResources) -> HostedPartition:
    """Open and recover one partition, or make it, if it has no files yet. One that is damaged is stopped: its
    `failure` says why, and the caller tells of that. Blocks, on any thread.

    Raises Shortage, such as NoSpace: nothing is wrong with the partition, and it can be opened later.
    """
    partition = assemble(unopened, resources)
    try:
        resources.store.ensure_sound(partition.identity)
        recover(partition)
    except Shortage:
        raise
    except (FaircopyError, OSError) as error:
        partition.fail(error if isinstance(error, FaircopyError) else FaircopyError(str(error)))
    return partition


def assemble(unopened: Unopened, resources: PartitionResources) -> HostedPartition:
    """A partition of which nothing is read yet."""
    store, disk, loop, identity = resources.store, resources.disk, resources.loop, unopened.id.identity
    options = resources.journal_options
    journal = Journal(unopened.journal_path, identity, disk, loop, options, unopened.leader_epoch)
    log = DataLog(unopened.log_path, identity, store, unopened.log_segment_bytes, resources.steady_ms)
    copier = LogCopier(journal, log, store, disk, loop, lambda error: resources.on_damage(partition, error))
    partition = resources.partition_type(unopened.name, unopened.id, journal, copier, store, disk)
    return partition


def recover(partition: Partition) -> None:
    """Bring a partition to where it was, in the order above. Its sink may be a table, in the place of a log.

    Blocks. Raises DamagedJournal, DamagedLog, StorageFailure.
    """
    partition.sink.open(partition.load())
    journal = partition.journal
    journal.open()
    journal.recover(partition.state.position, partition.recover_entry, lambda: finish_fold(partition))


def finish_fold(partition: Partition) -> None:
    """All is folded, and nothing is cut yet. Raises DamagedJournal if something durable is missing."""
    ensure_drafts(partition)
    ensure_leads(partition)
    partition.sink.recovered(partition.state.epochs.newest)


def ensure_drafts(partition: Partition) -> None:
    """Read the drafts below the checkpoint that may still be applied: the fold has not, and it is better to
    stop now than after an ack. Raises DamagedJournal.
    """
    for transaction_id, transaction in partition.state.transactions.items():
        if transaction.is_undecided and transaction.first < partition.checkpoint_position:
            ReverseWalk(partition.journal, transaction_id, read_from_disk).check(transaction.head)


def ensure_leads(partition: Partition) -> None:
    """Nobody leads under an epoch that was led before, be it by this broker (I8). 0 is that of no leader.

    Raises DamagedJournal.
    """
    newest, next_epoch = partition.state.epochs.newest, partition.leader_epoch
    if 0 < newest >= next_epoch:
        raise DamagedJournal(
            f"{partition.journal.directory} has entries of leader epoch {newest}, and the next one is to be "
            f"{next_epoch}: the state store is older than the journal; restore both from one backup"
        )
