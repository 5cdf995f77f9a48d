"""The numbers that distinguish one life of a leader from all earlier ones.

local notes    incarnation          how often a process has started on this data; each start raises it first
               leader-epochs/<n>    the leader epoch of shard n: at least the incarnation that raised it

Both in decimal.
"""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.storage.local_notes import LocalNotes

INCARNATION_NAME = "incarnation"
EPOCH_PREFIX = "leader-epochs/"
EPOCHS_SKIPPED = 1_000
"""More than the number of starts between a backup and its restore. There are 2^23 epochs in all."""


def leader_epoch(notes: LocalNotes, shard: int) -> int:
    """The epoch under which a shard was last led; 0 if it never was."""
    return int(notes.get(f"{EPOCH_PREFIX}{shard}") or 0)


async def note_leader_epochs(notes: LocalNotes, epochs: Mapping[int, int]) -> None:
    """Note the epochs of these shards. Durable when done."""
    await notes.write({f"{EPOCH_PREFIX}{shard}": b"%d" % epoch for shard, epoch in epochs.items()})


def incarnation(notes: LocalNotes) -> int:
    """That of the last process; 0 if none has ever started here."""
    return int(notes.get(INCARNATION_NAME) or 0)


def greatest_epoch(notes: LocalNotes) -> int:
    """The greatest epoch of all lives on this directory, or the number of its starts if that is greater."""
    return max(incarnation(notes), *map(int, notes.scan(EPOCH_PREFIX).values()), 0)


async def note_incarnation(notes: LocalNotes, number: int) -> None:
    """The epoch of a replica set counts as the incarnation of its leader. Durable when done."""
    await notes.write({INCARNATION_NAME: b"%d" % number})


async def raise_incarnation(notes: LocalNotes, by: int = 1) -> int:
    """Take the incarnation of this process at its start. No other process has the same. Durable when done."""
    raised = incarnation(notes) + by
    await note_incarnation(notes, raised)
    return raised
