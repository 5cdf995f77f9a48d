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


async def raise_incarnation(notes: LocalNotes, by: int = 1) -> int:
    """Take the incarnation of this process at its start. No other process has the same. Durable when done."""
    raised = incarnation(notes) + by
    await notes.write({INCARNATION_NAME: b"%d" % raised})
    return raised


async def skip_epochs(notes: LocalNotes) -> None:
    """Make the next start, on an older copy, lead under greater epochs than the original has reached.

    Durable when done.
    """
    greatest = max(map(int, notes.scan(EPOCH_PREFIX).values()), default=0)
    await raise_incarnation(notes, max(greatest - incarnation(notes), 0) + EPOCHS_SKIPPED)
