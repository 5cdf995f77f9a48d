"""The steady clock of a data directory, over the lives of its brokers.

local notes    steady-clock    a `SteadyNote`, as JSON
"""

from __future__ import annotations

from faircopy.storage.clock import SteadyNote
from faircopy.storage.local_notes import LocalNotes

STEADY_NAME = "steady-clock"


def steady_note(notes: LocalNotes) -> SteadyNote | None:
    """The last note; None if there is none yet."""
    found = notes.get(STEADY_NAME)
    return SteadyNote.decode(found) if found is not None else None


async def store_steady_note(notes: LocalNotes, note: SteadyNote) -> None:
    """Store a note. Durable when done."""
    await notes.write({STEADY_NAME: note.encode()})


async def forget_boot(notes: LocalNotes) -> None:
    """Make the clock of an older copy go on from its limit, also on the machine that the copy is of: the time
    since the copy was made is none in which the copy's data grew old. Durable when done.
    """
    note = steady_note(notes)
    if note is not None:
        await store_steady_note(notes, note._replace(boot_id=""))
