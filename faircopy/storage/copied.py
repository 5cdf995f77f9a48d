"""A directory that is a copy of another one, until its first start has parted it from the original.

local notes    copied    there until then
"""

from __future__ import annotations

from faircopy.storage.local_notes import LocalNotes

COPIED_NAME = "copied"


def is_copied(notes: LocalNotes) -> bool:
    """Whether nobody has started on this copy yet."""
    return notes.get(COPIED_NAME) is not None


async def note_copied(notes: LocalNotes) -> None:
    """Note that this is a copy. Durable when done."""
    await notes.write({COPIED_NAME: b"yes"})


async def note_parted(notes: LocalNotes) -> None:
    """The copy has parted from the original. Durable when done."""
    await notes.write({COPIED_NAME: None})
