"""Opening a partition at startup, from its checkpoint, its log and its journal.

The order of the steps matters: each trusts only what an earlier one has established.

1. The checkpoint gives the state as last stored (I6), and says where the log ended then. The log is opened at
   that end: what its files hold after it is written again in step 3, or dropped in step 5.
2. The journal finds its segments.
3. Its entries after the checkpoint are read, checked and fsynced. Each is folded into the state, and its
   effect goes into the log at once.
4. The end is judged. It must be that of the journal, or a torn tail, and nothing durable may be missing. The
   epoch that is about to lead must be new.
5. What was read is accepted: the log drops what the journal does not have, and then the journal cuts its torn
   tail.

So if a partition turns out to be damaged, all its files are still as they were found, ready for repair.

Partitions of group offsets and metadata journals are opened in the same steps (`groups/offsets_journals.py`,
`transactions/metadata_journal.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faircopy.copier.log_copier import LogCopier
from faircopy.datalog.log import DataLog
from faircopy.errors import FaircopyError
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.opening import Opening
from faircopy.journal.options import JournalOptions
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.journal.shipping import NOT_SHIPPED, Shipping
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.partition import Partition
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import Shortage
from faircopy.storage.state_store import StateStore


class PartitionResources(NamedTuple):
    """What all partitions of topics share.

    `steady_ms` is the clock for the ages of log segments. `on_damage` is called on the event loop when a
    partition that serves turns out to be damaged.
    """

    store: StateStore
    disk: DiskPool
    loop: asyncio.AbstractEventLoop
    steady_ms: Callable[[], int]
    journal_options: JournalOptions
    partition_type: type[HostedPartition]
    on_damage: Callable[[HostedPartition, FaircopyError], None]
    shipping: Shipping = NOT_SHIPPED


class Unopened(NamedTuple):
    """A partition to be opened: its identity, the paths of its files, and the leader epoch it gets."""

    name: PartitionName
    id: TopicIdPartition
    journal_path: Path
    log_path: Path
    log_segment_bytes: int
    leader_epoch: int


def open_partition(unopened: Unopened, resources: PartitionResources) -> HostedPartition:
    """Open and recover one partition, or create it if it has no files yet. See `recover_or_stop`."""
    partition = assemble(unopened, resources)
    recover_or_stop(partition, resources.store)
    return partition


def recover_or_stop(partition: HostedPartition, store: StateStore) -> None:
    """Recover a partition. A damaged one is stopped: its `failure` says why, and the caller reports it.
    Blocks, on any thread.

    Raises Shortage, such as NoSpace: then the partition is intact, and can be opened later.
    """
    try:
        store.ensure_sound(partition.identity)
        recover(partition)
    except Shortage:
        raise
    except (FaircopyError, OSError) as error:
        partition.fail(error if isinstance(error, FaircopyError) else FaircopyError(str(error)))


def assemble(unopened: Unopened, resources: PartitionResources) -> HostedPartition:
    """A partition whose files have not been read yet."""
    store, disk, loop, identity = resources.store, resources.disk, resources.loop, unopened.id.identity
    options = resources.journal_options
    journal = Journal(unopened.journal_path, identity, disk, loop, options, unopened.leader_epoch)
    log = DataLog(unopened.log_path, identity, store, unopened.log_segment_bytes, resources.steady_ms)
    copier = LogCopier(
        journal,
        log,
        store,
        disk,
        loop,
        lambda error: resources.on_damage(partition, error),
    )
    partition = resources.partition_type(unopened.name, unopened.id, journal, copier, store, disk)
    return partition


def recover(partition: HostedPartition) -> None:
    """Recover a partition in the order above. Blocks. Raises DamagedJournal, DamagedLog, StorageFailure."""
    copier = partition.copier
    checkpoint = partition.load()
    copier.open(checkpoint)
    opening = partition.journal.open(checkpoint.position, checkpoint.journal_epochs)
    for recovered in opening.entries():
        try:
            effect = partition.fold_found(recovered)
            if effect is not None:
                copier.recover(effect, recovered)
        except Exception as error:
            opening.refuse(recovered.entry, error)
    opening.judge_end()
    ensure_whole(partition, opening)
    copier.drop_rest(partition.state.epochs.newest)
    accept(partition, opening)


def ensure_whole(partition: Partition, opening: Opening) -> None:
    """When everything is folded and nothing is cut yet: raise DamagedJournal if something durable is missing,
    or if somebody has led under this epoch.
    """
    ensure_drafts(partition)
    partition.journal.ensure_leads(opening)


def accept(partition: Partition, opening: Opening) -> None:
    """The journal is what was read of it, and the state is that of its end. Blocks. Raises StorageFailure."""
    partition.journal.accept(opening)
    partition.state.position = opening.end  # beyond an entry that was passed over


def ensure_drafts(partition: Partition) -> None:
    """Read the drafts below the checkpoint that may still be applied. The fold did not read them, and it is
    better to stop now than after an ack. Raises DamagedJournal.
    """
    for transaction_id, transaction in partition.state.undecided.items():
        if transaction.first < partition.checkpoint_position:
            ReverseWalk(partition.journal, transaction_id, read_from_disk).check(transaction.head)
