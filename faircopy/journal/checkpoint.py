"""The checkpoint of a journal: how far its fold is stored, and the leader epochs of the entries up to there.

In the table `checkpoints`, as JSON: {"position", "journal_epochs": [[epoch, position of its first entry],
...]}. A row of format 2 has no epochs: they are unknown up to its position. Pure.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from faircopy.storage.epoch_history import NO_EPOCHS, UNKNOWN_EPOCHS, Epochs

EPOCHS_FIELD = "journal_epochs"


class JournalCheckpoint(NamedTuple):
    """A journal that has never been checkpointed has this one without arguments."""

    position: int = 0
    epochs: Epochs = NO_EPOCHS


def encode_journal_checkpoint(checkpoint: JournalCheckpoint) -> bytes:
    """The row for a checkpoint."""
    fields = {"position": checkpoint.position, EPOCHS_FIELD: checkpoint.epochs.starts}
    return json.dumps(fields).encode()


def decode_journal_checkpoint(row: bytes | None) -> JournalCheckpoint:
    """The checkpoint in a row, or that of a journal that has none."""
    if row is None:
        return JournalCheckpoint()
    fields = json.loads(row)
    return JournalCheckpoint(fields["position"], stored_epochs(fields))


def stored_epochs(fields: dict[str, object]) -> Epochs:
    """The epochs in the fields of a row, of whichever kind of journal."""
    pairs = fields.get(EPOCHS_FIELD)
    return UNKNOWN_EPOCHS if pairs is None else Epochs.of(pairs)  # type: ignore[arg-type]
