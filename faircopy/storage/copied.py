"""A directory that is a copy of another one, until its first start has parted it from the original.

local notes    copied    there until then
"""

from __future__ import annotations

from faircopy.storage.epochs import EPOCHS_SKIPPED, INCARNATION_NAME, greatest_epoch
from faircopy.storage.local_notes import LocalNotes

COPIED_NAME = "copied"


def is_copied(notes: LocalNotes) -> bool:
    """Whether nobody has started on this copy yet."""
    return notes.get(COPIED_NAME) is not None


async def note_copied(notes: LocalNotes, *left: str) -> None:
    """Note that this is a copy: its first start leads under greater epochs than the original has reached, and
    skips producer ids, which are in a journal. What the notes `left` say is true of the original only. All of
    it is one write. Durable when done.
    """
    skipped = greatest_epoch(notes) + EPOCHS_SKIPPED
    await notes.write(dict.fromkeys(left) | {COPIED_NAME: b"yes", INCARNATION_NAME: b"%d" % skipped})


async def note_parted(notes: LocalNotes) -> None:
    """The copy has parted from the original. Durable when done."""
    await notes.write({COPIED_NAME: None})
