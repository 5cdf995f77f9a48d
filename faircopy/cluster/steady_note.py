"""The steady clock of a data directory, over the lives of its brokers.

cluster store    steady-clock    a `SteadyNote`, as JSON
"""

from __future__ import annotations

from faircopy.cluster.store import ClusterStore
from faircopy.storage.clock import SteadyNote

STEADY_KEY = "steady-clock"


def steady_note(store: ClusterStore) -> SteadyNote | None:
    """The last note; None if there is none yet."""
    found = store.get(STEADY_KEY)
    return SteadyNote.decode(found.value) if found is not None else None


async def store_steady_note(store: ClusterStore, note: SteadyNote) -> None:
    """Store a note. Durable when done."""
    await store.transact({}, {STEADY_KEY: note.encode()})


async def forget_boot(store: ClusterStore) -> None:
    """Make the clock of an older copy go on from its limit, also on the machine that the copy is of: the time
    since the copy was made is none in which the copy's data grew old. Durable when done.
    """
    note = steady_note(store)
    if note is not None:
        await store_steady_note(store, note._replace(boot_id=""))
