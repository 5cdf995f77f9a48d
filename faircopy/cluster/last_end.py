"""How the last life of a broker ended.

cluster store    clean-shutdown    there if it ended in order: the id of its process
                 boot              on which start of the machine it ran
                 synced            there if what it acked as durable was fsynced
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.cluster.store import ClusterStore

CLEAN_KEY = "clean-shutdown"
BOOT_KEY = "boot"
SYNCED_KEY = "synced"


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


def last_end(store: ClusterStore, boot_id: str) -> LastEnd:
    """What a start finds. `boot_id` is that of the machine's present start, or empty if it is not known."""
    boot = store.get(BOOT_KEY)
    is_same_boot = bool(boot_id) and boot is not None and boot.value == boot_id.encode()
    return LastEnd(store.get(CLEAN_KEY) is not None, is_same_boot, store.get(SYNCED_KEY) is not None)


async def note_running(store: ClusterStore, boot_id: str, *, is_synced: bool) -> None:
    """A broker runs: unless it says otherwise, its end is not in order. If it `is_synced`, everything in its
    files is on disk now, and what it acks as durable will be. Durable when done.
    """
    synced = b"yes" if is_synced else None
    await store.transact({}, {CLEAN_KEY: None, BOOT_KEY: boot_id.encode(), SYNCED_KEY: synced})


async def forget_last_end(store: ClusterStore) -> None:
    """From now on, a start finds that power was lost, and that nothing was fsynced. Durable when done."""
    await store.transact({}, {CLEAN_KEY: None, BOOT_KEY: None, SYNCED_KEY: None})


async def note_clean_end(store: ClusterStore, process_id: int) -> None:
    """A broker ends in order. Durable when done."""
    await store.transact({}, {CLEAN_KEY: str(process_id).encode()})
