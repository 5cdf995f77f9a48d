"""Journals on real files, opened and reopened, and their bytes torn, for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from faircopy.journal.entry import Entry
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import Recovered
from faircopy.storage.epoch_history import NO_EPOCHS, Epochs
from tests.unit.idle import CountedPool, idle

IDENTITY = bytes(range(20))
SEGMENT_BYTES = 1 << 20


def itself(entry: Entry) -> Entry:
    """Stands in for a fold."""
    return entry


class Bench:
    """A loop's worth of journals in one directory."""

    def __init__(self, path: Path, durability: Durability = Durability.FSYNC) -> None:
        self.path = path
        self.loop = asyncio.get_running_loop()
        self.disk = CountedPool(self.loop, threads=2)
        self.failures: list[BaseException] = []
        self.bugs: list[Exception] = []
        self.durability = durability
        self.moved: list[bytes] = []
        self._salt = 0

    async def idle(self) -> None:
        """Wait until nothing more happens by itself."""
        await idle(self.disk)

    def new_salt(self) -> int:
        self._salt += 1
        return self._salt

    def journal(
        self,
        passed_over: list[DamagedJournal] | None = None,
        leader_epoch: int = 0,
        *,
        is_replicated: bool = False,
    ) -> Journal:
        options = JournalOptions(
            self.durability,
            SEGMENT_BYTES,
            self.new_salt,
            self.failures.append,
            on_bug=self.bugs.append,
            passed_over=passed_over,
            on_moved=self.moved.append,
            is_replicated=is_replicated,
        )
        return Journal(self.path, IDENTITY, self.disk, self.loop, options, leader_epoch)

    def recovered(self, start: int = 0) -> tuple[Journal, list[tuple[int, bytes]]]:
        """A journal opened from disk, and the (position, payload) pairs that it holds from `start` on."""
        found: list[tuple[int, bytes]] = []
        journal = self.journal()

        def fold(recovered: Recovered) -> None:
            found.append((recovered.entry.position, bytes(recovered.payload)))

        recover(journal, start, fold)
        return journal, found


def recover(
    journal: Journal, start: int, fold: Callable[[Recovered], None], epochs: Epochs = NO_EPOCHS
) -> None:
    """Open a journal, as whoever folds it does."""
    opening = journal.open(start, epochs)
    for recovered in opening.entries():
        try:
            fold(recovered)
        except Exception as error:
            opening.refuse(recovered.entry, error)
    opening.judge_end()
    journal.ensure_leads(opening)
    journal.accept(opening)


def run(
    path: Path, test: Callable[[Bench], Awaitable[Any]], durability: Durability = Durability.FSYNC
) -> None:
    """Run a test with a fresh loop."""

    async def main() -> None:
        bench = Bench(path, durability)
        try:
            await test(bench)
        finally:
            bench.disk.close()

    asyncio.run(main())


def only_segment(path: Path) -> Path:
    (segment,) = path.glob("*.journal")
    return segment


def flip(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 0xFF
    path.write_bytes(data)


def tear(path: Path, first: int, end: int, data: st.DataObject) -> None:
    """Lose any of the 512-byte sectors between two bytes of a file, as a power cut may."""
    content = bytearray(path.read_bytes())
    for at in range(first, end, 512):
        if data.draw(st.booleans()):
            content[at : min(at + 512, end)] = bytes(min(at + 512, end) - at)
    path.write_bytes(content)
