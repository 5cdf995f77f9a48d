"""The visible log: reading from any offset and any time, over segments and checkpoints."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.datalog.log import DataLog, OffsetOutOfRange
from faircopy.datalog.read import read_batches, read_from_cache, read_from_disk
from faircopy.datalog.time_search import find_in_batch, find_time
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import StorageFailure
from faircopy.storage.file import NotCached
from faircopy.storage.state_store import StateStore
from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.compression import ZSTD
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.peak_memory import takes_less_than

BATCHES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 40_000), st.integers(0, 50)), min_size=1, max_size=25
)


def append(log: DataLog, base_offset: int, records: int, size: int, time_ms: int) -> None:
    batch = build_batch(
        [NewRecord(b"v" * size, timestamp_ms=time_ms + n) for n in range(records)], base_offset=base_offset
    )
    placed = log.place(base_offset, records, len(batch), time_ms + records - 1, (batch,))
    placed.segment.file.write([batch], placed.byte)
    log.show([placed])


@settings(max_examples=60, deadline=None)
@given(batches=BATCHES, checkpoint_after=st.integers(0, 25), data=st.data())
def test_every_offset_and_time_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[int, int, int]],
    checkpoint_after: int,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("log")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        store, disk = StateStore(path / "state", loop), DiskPool(loop, threads=1)
        log = DataLog(path / "log", b"i" * 20, store, segment_bytes=100_000)
        log.open(None, 0, 0)
        times: list[int] = []
        bases: list[int] = []
        for number, (records, size, time_ms) in enumerate(batches):
            bases += [len(times)] * records
            append(log, len(times), records, size, time_ms)
            times += range(time_ms, time_ms + records)
            if number + 1 == checkpoint_after:
                await store.write(log.index.checkpoint(log.end_offset))
                log.index.forget(log.end_offset)
        log._recent.clear()
        for offset in range(len(times)):
            plan = log.plan_read(offset)
            assert plan is not None
            found = read_batches(plan, data.draw(st.integers(1, 200_000)), read_from_disk)
            header = read_header(found)
            assert header.base_offset == bases[offset]
            assert len(found) >= header.size_bytes
        assert log.plan_read(len(times)) is None
        for time_ms in range(-1, 60):
            expected = next((offset for offset, each in enumerate(times) if each >= time_ms), None)
            result = await find_time(log, disk, time_ms)
            assert (result and result.offset) == expected
        for outside in (-1, len(times) + 1):
            with pytest.raises(OffsetOutOfRange):
                log.plan_read(outside)
        disk.close()
        store.close()

    asyncio.run(main())


def test_a_search_by_time_takes_little_memory() -> None:
    """Some kilobytes of zstd can hold anything; then the batch's begin is what is told."""
    plain = build_batch([NewRecord(bytes(100 << 20), timestamp_ms=5)], base_offset=7)
    section = bytes(cramjam.zstd.compress(plain[HEADER_BYTES:]))
    header = read_header(plain)
    header = header._replace(length=header.length - len(plain) + HEADER_BYTES + len(section), attributes=ZSTD)
    batch = with_crc(HEADER.pack(*header) + section)
    del plain

    def find() -> None:
        assert find_in_batch(batch, header, 5, 0) == (7, 5)

    assert len(batch) < 20_000
    assert takes_less_than(48 << 20, find, "a search by time")


def test_what_is_placed_but_not_shown_is_not_read(tmp_path: Path) -> None:
    async def main() -> None:
        store = StateStore(tmp_path / "state", asyncio.get_running_loop())
        log = DataLog(tmp_path / "log", b"i" * 20, store, segment_bytes=1 << 20)
        log.open(None, 0, 0)
        append(log, 0, 1, 10, 0)
        batch = build_batch([NewRecord(b"hidden")], base_offset=1)
        placed = log.place(1, 1, len(batch), 0, (batch,))
        placed.segment.file.write([batch], placed.byte)
        plan = log.plan_read(0)
        assert plan is not None
        assert b"hidden" not in read_batches(plan, 1 << 20, read_from_disk)
        with pytest.raises(OffsetOutOfRange):
            log.plan_read(2)
        log.show([placed])
        plan = log.plan_read(1)
        assert plan is not None
        with contextlib.suppress(NotCached):
            assert b"hidden" in read_batches(plan, 1 << 20, read_from_cache)
        store.close()

    asyncio.run(main())


def test_a_segment_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    """A checkpoint may sync, and a reader may open, what retention deletes meanwhile."""

    async def main() -> None:
        store = StateStore(tmp_path / "state", asyncio.get_running_loop())
        log = DataLog(tmp_path / "log", b"i" * 20, store, segment_bytes=1)
        log.open(None, 0, 0)
        append(log, 0, 1, 10, 0)
        append(log, 1, 1, 10, 0)
        plan = log.plan_read(0)
        assert plan is not None
        log.trim(1)
        gone, _ = log.take_gone(1)
        for segment in gone:
            segment.discard()
        for segment in log.take_unsynced():
            segment.sync()
        with pytest.raises(StorageFailure):
            read_batches(plan, 1 << 20, read_from_disk)
        assert [path.name for path in (tmp_path / "log").iterdir()] == [log.segments[0].path.name]
        store.close()

    asyncio.run(main())
