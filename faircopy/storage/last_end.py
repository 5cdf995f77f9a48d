"""How the last life of a broker ended.

local notes    clean-end    there if it ended in order: the id of its process
               boot         on which start of the machine it ran
               synced       there if what it acked as durable was fsynced
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.storage.local_notes import LocalNotes

CLEAN_NAME = "clean-end"
BOOT_NAME = "boot"
SYNCED_NAME = "synced"


class LastEnd(NamedTuple):
    """`is_clean`: it ended in order. `is_same_boot`: the machine has not been restarted since, as far as that
    is known. `is_synced`: these are its own files, and what it acked as durable was fsynced.
    """

    is_clean: bool
    is_same_boot: bool
    is_synced: bool

    @property
    def lost_power(self) -> bool:
        """Whether what was written, but not fsynced, may be lost."""
        return not self.is_clean and not self.is_same_boot


def last_end(notes: LocalNotes, boot_id: str) -> LastEnd:
    """What a start finds. `boot_id` is that of the machine's present start, or empty if it is not known."""
    is_same_boot = bool(boot_id) and notes.get(BOOT_NAME) == boot_id.encode()
    return LastEnd(notes.get(CLEAN_NAME) is not None, is_same_boot, notes.get(SYNCED_NAME) is not None)


async def note_running(notes: LocalNotes, boot_id: str, *, is_synced: bool) -> None:
    """A broker runs: unless it says otherwise, its end is not in order. If it `is_synced`, everything in its
    files is on disk now, and what it acks as durable will be. Durable when done.
    """
    synced = b"yes" if is_synced else None
    await notes.write({CLEAN_NAME: None, BOOT_NAME: boot_id.encode(), SYNCED_NAME: synced})


async def forget_last_end(notes: LocalNotes) -> None:
    """From now on, a start finds that power was lost, and that nothing was fsynced. Durable when done."""
    await notes.write({CLEAN_NAME: None, BOOT_NAME: None, SYNCED_NAME: None})


async def note_clean_end(notes: LocalNotes, process_id: int) -> None:
    """A broker ends in order. Durable when done."""
    await notes.write({CLEAN_NAME: str(process_id).encode()})
