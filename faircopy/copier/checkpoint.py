"""What a checkpoint stores, byte for byte (I6). Pure: state to store changes, and back.

    checkpoints   identity                                   -> JSON of `Checkpoint`
    producers     identity, producer id i64                  -> see `producer_row`
    transactions  identity, pid i64, epoch i16, number i64   -> standing u8, head i64, first i64,
                                                                drafts u32, records u64, size u64, rank i64
    spans         identity, first offset u64                 -> see `span_chunk`

Integers are big-endian, so that keys sort as numbers. A checkpoint stores only the producers and undecided
transactions that changed since the last one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import NamedTuple

from faircopy.copier.fold import NOBODY, Branch, PartitionState, Standing
from faircopy.journal.checkpoint import EPOCHS_FIELD, stored_epochs
from faircopy.journal.entry import TransactionId
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.state_store import Change, Delete, DeletePrefix, Put

_PRODUCER_KEY = struct.Struct(">q")
_TRANSACTION_KEY = struct.Struct(">qhq")
_TRANSACTION = struct.Struct(">BqqIQQq")


class Checkpoint(NamedTuple):
    """The values that a partition has once: the journal position, offsets, the end of the data log, two
    fields of `PartitionState` (`epochs` is by offset), and the leader epochs of the journal's entries, by
    position.
    """

    position: int
    start_offset: int
    next_offset: int
    log_segment_base: int | None
    log_byte: int
    forgotten_producer_id: int = NOBODY
    epochs: Epochs = Epochs()
    journal_epochs: Epochs = Epochs()


NO_CHECKPOINT = Checkpoint(0, 0, 0, None, 0)
"""The checkpoint of a partition that has never been checkpointed."""


def encode_checkpoint(identity: bytes, checkpoint: Checkpoint) -> Put:
    """The change that stores a checkpoint of the partition with this identity."""
    fields = checkpoint._asdict() | {
        "epochs": checkpoint.epochs.starts,
        EPOCHS_FIELD: checkpoint.journal_epochs.starts,
    }
    return Put("checkpoints", identity, json.dumps(fields).encode())


def decode_checkpoint(value: bytes) -> Checkpoint:
    """The checkpoint in a stored value."""
    fields = json.loads(value)
    return Checkpoint(**fields | {"epochs": Epochs.of(fields["epochs"]), EPOCHS_FIELD: stored_epochs(fields)})


class Changed(NamedTuple):
    """Which producers and transactions changed since the last checkpoint."""

    producers: set[int]
    transactions: set[TransactionId]


def take_changed(state: PartitionState) -> Changed:
    """Return what changed since the last call. From now on it counts as unchanged."""
    changed = Changed(state.changed_producers, state.changed_transactions)
    state.changed_producers, state.changed_transactions = set(), set()
    return changed


def give_back(state: PartitionState, changed: Changed) -> None:
    """Count these as changed again, because they could not be stored."""
    state.changed_producers |= changed.producers
    state.changed_transactions |= changed.transactions


def changes_of(identity: bytes, state: PartitionState, changed: Changed) -> list[Change]:
    """The changes that bring the store up to date with `state`."""
    changes: list[Change] = [_producer_change(identity, pid, state) for pid in changed.producers]
    return changes + [_transaction_change(identity, txid, state) for txid in changed.transactions]


def _producer_change(identity: bytes, producer_id: int, state: PartitionState) -> Change:
    key = identity + _PRODUCER_KEY.pack(producer_id)
    row = state.producers.row(producer_id)
    return Put("producers", key, row) if row is not None else Delete("producers", key)


def _transaction_change(identity: bytes, transaction_id: TransactionId, state: PartitionState) -> Change:
    key = identity + _TRANSACTION_KEY.pack(*transaction_id)
    transaction = state.undecided.get(transaction_id)
    if transaction is None:
        return Delete("transactions", key)
    return Put("transactions", key, encode_transaction(transaction))


def encode_transaction(transaction: Branch) -> bytes:
    """Encode an undecided transaction's branch in this partition. Its drafts are in the journal."""
    return _TRANSACTION.pack(
        transaction.standing,
        transaction.head,
        transaction.first,
        transaction.drafts,
        transaction.records,
        transaction.size,
        transaction.rank,
    )


def decode_transaction(value: bytes) -> Branch:
    """The branch in a stored value."""
    standing, *rest = _TRANSACTION.unpack(value)
    return Branch(Standing(standing), *rest)


def restore(
    checkpoint: Checkpoint,
    producers: Iterable[tuple[bytes, bytes]],
    transactions: Iterable[tuple[bytes, bytes]],
) -> PartitionState:
    """Restore the state from a checkpoint and the (key, value) pairs scanned from the other tables."""
    state = PartitionState()
    state.position, state.start_offset, state.next_offset = checkpoint[:3]
    state.forgotten_producer_id = checkpoint.forgotten_producer_id
    state.epochs = checkpoint.epochs
    for key, row in producers:
        producer_id = _PRODUCER_KEY.unpack(key[-_PRODUCER_KEY.size :])[0]
        state.outcomes += state.producers.restore(producer_id, row)
    for key, value in transactions:
        transaction_id = TransactionId._make(_TRANSACTION_KEY.unpack(key[-_TRANSACTION_KEY.size :]))
        state.undecided[transaction_id] = transaction = decode_transaction(value)
        if transaction.standing is Standing.PREPARED:
            state.prepared.add(transaction_id)
    return state


def delete_partition(identity: bytes) -> list[Change]:
    """The changes that delete everything stored for a partition."""
    tables = (
        "checkpoints",
        "producers",
        "transactions",
        "spans",
        "offset_index",
        "log_segments",
    )
    return [DeletePrefix(table, identity) for table in tables]
