"""Searches by time find what a scan of the log finds, whatever was deleted, stored, or opened again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.datalog.log import DataLog, LogEnd
from faircopy.datalog.time_search import TimedOffset, find_latest, find_time
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import Change, StateStore
from faircopy.wire.batch import read_header
from faircopy.wire.records import NewRecord, build_batch

IDENTITY = b"i" * 20
TIMES = range(-2, 24)
BATCH = st.tuples(st.lists(st.integers(0, 20), min_size=1, max_size=4), st.integers(0, 30_000))
STEP = BATCH | st.sampled_from(["checkpoint", "reopen"]) | st.floats(0, 1)


class Written:
    """A log, and the times of its messages."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.path = path
        self.store = StateStore(path / "state", loop)
        self.disk = DiskPool(loop, threads=1)
        self.times: list[int] = []
        self.log = self._opened(None, 0, 0)

    def _opened(self, end: LogEnd | None, start: int, end_offset: int) -> DataLog:
        log = DataLog(self.path / "log", IDENTITY, self.store, segment_bytes=150_000)
        log.open(end, start, end_offset)
        return log

    def append(self, times: list[int], size: int) -> None:
        """One batch, with these messages."""
        batch = build_batch(
            [NewRecord(bytes(size), timestamp_ms=time) for time in times], base_offset=len(self.times)
        )
        placed = self.log.place(len(self.times), len(times), len(batch), max(times), (batch,))
        placed.segment.file.write([batch], placed.byte)
        self.log.show([placed])
        self.times += times

    async def checkpoint(self) -> None:
        """As the copier does it."""
        await self.store.write(self.changes())
        self.log.index.forget(self.log.end_offset)
        self.log.times.stored()

    def changes(self) -> list[Change]:
        """What a checkpoint stores."""
        self.log.stamp()
        return [*self.log.index.checkpoint(self.log.end_offset), *self.log.times.checkpoint()]

    async def delete(self, share: float) -> None:
        """Move the start, as DeleteRecords and retention do."""
        self.log.trim(self.log.start_offset + int(share * (self.log.end_offset - self.log.start_offset)))
        gone, changes = self.log.take_gone(self.log.first_base)
        for segment in gone:
            segment.discard()
        await self.store.write(changes)

    async def reopen(self) -> None:
        """A start after an orderly stop."""
        await self.checkpoint()
        log = self.log
        self.log = self._opened(log.end, log.start_offset, log.end_offset)

    async def take(self, step: tuple[list[int], int] | str | float) -> None:
        """Do a step of the test."""
        match step:
            case "checkpoint":
                await self.checkpoint()
            case "reopen":
                await self.reopen()
            case float():
                await self.delete(step)
            case (list() as times, int() as size):
                self.append(times, size)

    async def check(self) -> None:
        """Compare all searches with a scan."""
        left = [TimedOffset(offset, time) for offset, time in enumerate(self.times)]
        left = left[self.log.start_offset :]
        for time_ms in TIMES:
            expected = next((each for each in left if each.timestamp_ms >= time_ms), None)
            assert await find_time(self.log, self.disk, time_ms) == expected
        latest = max(left, key=lambda each: each.timestamp_ms, default=None)
        assert await find_latest(self.log, self.disk) == latest

    def close(self) -> None:
        """Close it all."""
        self.disk.close()
        self.store.close()


@settings(max_examples=120, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=25))
def test_searches_find_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[int], int] | str | float]
) -> None:
    async def main() -> None:
        written = Written(tmp_path_factory.mktemp("log"), asyncio.get_running_loop())
        for step in steps:
            await written.take(step)
            await written.check()
        written.close()

    asyncio.run(main())


def test_a_header_that_claims_too_much(tmp_path: Path) -> None:
    """A search goes on where it finds nothing."""

    async def main() -> None:
        written = Written(tmp_path, asyncio.get_running_loop())
        written.append([1], 10)
        batch = build_batch([NewRecord(b"", timestamp_ms=2)], base_offset=1)
        assert read_header(batch).max_timestamp_ms == 2
        lying = batch[:35] + (20).to_bytes(8, "big") + batch[43:]
        placed = written.log.place(1, 1, len(lying), 20, (lying,))
        placed.segment.file.write([lying], placed.byte)
        written.log.show([placed])
        written.times.append(2)
        written.append([7], 10)
        await written.check()
        written.close()

    asyncio.run(main())
