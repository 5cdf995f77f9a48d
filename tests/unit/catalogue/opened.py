"""A catalogue in a directory, without a broker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from faircopy.catalogue.journal import CatalogueJournal, catalogue_directory
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.state_store import StateStore
from faircopy.storage.versioned_map import Versioned

SEGMENT_BYTES = 1 << 20
_EPOCHS = itertools.count(1)


class Opened:
    """The catalogue, opened. `segment_bytes` is how large a file of its journal may become; entries that do
    not fold go to `passed_over`, if that is a list.
    """

    def __init__(
        self,
        directory: Path,
        segment_bytes: int = SEGMENT_BYTES,
        passed_over: list[DamagedJournal] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.failures: list[BaseException] = []
        self.space = SpaceWatch()
        self.store = StateStore(directory / "state.lmdb", loop)
        self.disk = DiskPool(loop)
        options = JournalOptions(
            Durability.OS,
            segment_bytes,
            lambda: 7,
            self.failures.append,
            space=self.space,
            passed_over=passed_over,
        )
        self.catalogue = CatalogueJournal.of(
            directory / "journal", self.store, self.disk, loop, options, next(_EPOCHS)
        )
        try:
            self.catalogue.open()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close()

    @property
    def contents(self) -> dict[str, Versioned]:
        """All that can be read."""
        return self.catalogue.scan("")

    def close(self) -> None:
        """Close it, as a broker that is killed does. Nothing may be under way."""
        assert self.failures == []
        self._close()

    def _close(self) -> None:
        self.disk.close()
        self.store.close()


def files_of(directory: Path) -> list[Path]:
    """The files of the journal of the catalogue in a directory."""
    return sorted(catalogue_directory(directory / "journal").glob("*.journal"))


def run(test: Callable[[], Awaitable[Any]]) -> None:
    """Run a test with a fresh loop."""

    async def main() -> None:
        await test()

    asyncio.run(main())
