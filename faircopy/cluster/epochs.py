"""The numbers that distinguish one life of a leader from all earlier ones, in the cluster store.

counters/incarnation   how often a process has started on this data; each start raises it first
shards/<n>             {"epoch": e}, the leader epoch of shard n: at least the incarnation that raised it
"""

from __future__ import annotations

import json

from faircopy.cluster.store import ClusterStore, Versioned, take_block

INCARNATION_COUNTER = "counters/incarnation"
SHARD_PREFIX = "shards/"
EPOCHS_SKIPPED = 1_000
"""More than the number of starts between a backup and its restore. There are 2^23 epochs in all."""


def encode_epoch(epoch: int) -> bytes:
    """Encode a shard's record."""
    return json.dumps({"epoch": epoch}).encode()


def epoch_in(stored: Versioned | None) -> int:
    """The epoch in a shard's record; 0 if there is none yet."""
    return int(json.loads(stored.value)["epoch"]) if stored is not None else 0


async def raise_incarnation(store: ClusterStore) -> int:
    """Take the incarnation of this process at its start. No other process has the same. Durable when done."""
    return (await take_block(store, INCARNATION_COUNTER, 1)).stop


async def skip_epochs(store: ClusterStore) -> None:
    """Make the next start, on an older copy, lead under greater epochs than the original has reached.

    Durable when done.
    """
    counter = store.get(INCARNATION_COUNTER)
    incarnation = int(counter.value) if counter is not None else 0
    greatest = max(map(epoch_in, store.scan(SHARD_PREFIX).values()), default=0)
    await take_block(store, INCARNATION_COUNTER, max(greatest - incarnation, 0) + EPOCHS_SKIPPED)
