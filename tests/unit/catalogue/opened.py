"""A catalogue in a directory, without a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

from faircopy.catalogue.journal import CatalogueJournal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore

SEGMENT_BYTES = 1 << 20


class Opened:
    """The catalogue, opened. `segment_bytes` is how large a file of its journal may become."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        loop = asyncio.get_running_loop()
        self.failures: list[BaseException] = []
        self.store = StateStore(directory / "state.lmdb", loop)
        self.disk = DiskPool(loop)
        options = JournalOptions(Durability.OS, segment_bytes, lambda: 7, self.failures.append)
        self.catalogue = CatalogueJournal.of(directory / "journal", self.store, self.disk, loop, options, 1)
        self.catalogue.open()

    def close(self) -> None:
        """Close it, as a broker that is killed does. Nothing may be under way."""
        assert self.failures == []
        self.disk.close()
        self.store.close()
