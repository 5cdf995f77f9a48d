"""What a broker notes of its own directory, and of nothing that other brokers share.

table `local`    name in UTF-8    -> value

    clean-end            there if the last life ended in order (`last_end.py`)
    boot, synced         on which start of the machine it ran; whether it fsynced (`last_end.py`)
    steady-clock         how far the steady clock has come (`steady_note.py`)
    incarnation          how often a process has started here (`epochs.py`)
    copied               there in a restored backup until it is started (`copied.py`)
    replica-set          what the directory knows of its set (`arbiter/directory_note.py`)
    leader-epochs/<n>    the epoch under which shard n was last led (`epochs.py`)

A directory has one broker at a time, so notes have no versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.storage.state_store import Delete, Put, StateStore

TABLE = "local"


class LocalNotes:
    """The notes in a state store."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def get(self, name: str) -> bytes | None:
        """A note, or None."""
        return self._store.get(TABLE, name.encode())

    def scan(self, prefix: str) -> dict[str, bytes]:
        """All notes whose names have this prefix, in order."""
        return {name.decode(): value for name, value in self._store.scan(TABLE, prefix.encode())}

    async def write(self, notes: Mapping[str, bytes | None]) -> None:
        """Write these notes, in one transaction; None deletes. Durable when done. Raises NoSpace."""
        await self._store.write(
            Delete(TABLE, name.encode()) if value is None else Put(TABLE, name.encode(), value)
            for name, value in notes.items()
        )
