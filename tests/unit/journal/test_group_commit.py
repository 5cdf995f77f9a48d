"""Who waits for a write or an fdatasync: when they are told, what they share, what they don't wait for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from faircopy.journal.entry import Kind
from faircopy.journal.errors import JournalFull
from faircopy.journal.group_commit import WriteRun, write_all
from faircopy.journal.segments import sync_files
from faircopy.storage.failures import NoSpace, StorageFailure
from faircopy.storage.file import File
from tests.unit.journal.journal_bench import Bench, itself, run


@contextlib.contextmanager
def opened_at_the_end(*gates: threading.Event) -> Iterator[None]:
    """No thread waits at a gate for ever if its test fails."""
    try:
        yield
    finally:
        for gate in gates:
            gate.set()


def test_waiters_are_called_in_order_and_share_an_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[Path] = []
    sync = File.sync

    def counted(file: File) -> None:
        syncs.append(file.path)
        sync(file)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        monkeypatch.setattr(File, "sync", counted)
        called: list[int] = []
        for n in range(100):
            journal.append(Kind.PLAIN, b"x", fold=itself)
            journal.when_durable(partial(called.append, n))
        await journal.durable()
        assert called == list(range(100))
        assert len(syncs) == 1

    run(tmp_path, test)


def test_a_draft_is_kept_without_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        synced = journal.watermarks.synced
        journal.append(Kind.DRAFT, b"draft", fold=itself)
        await journal.kept()
        assert journal.watermarks.written == journal.watermarks.appended
        assert journal.watermarks.synced == synced

    run(tmp_path, test)


def test_what_is_written_waits_for_no_fdatasync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts are acked once written, even while another's fdatasync is under way, and share the next one."""
    synced: list[int] = []
    go_on = threading.Event()

    def slow_sync(files: list[File]) -> None:
        synced.append(len(files))
        go_on.wait()
        sync_files(files)

    async def test(bench: Bench) -> None:
        with opened_at_the_end(go_on):
            await scene(bench)

    async def scene(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        monkeypatch.setattr("faircopy.journal.group_commit.sync_files", slow_sync)
        done: list[str] = []
        journal.append(Kind.PLAIN, b"second", fold=itself)
        journal.when_durable(lambda: done.append("second is durable"))
        while not synced:
            await asyncio.sleep(0)
        for size in (10, 1_000_000):
            journal.append(Kind.DRAFT, b"x" * size, fold=itself)
            await journal.kept()
            journal.when_durable(lambda: done.append("draft is durable"))
        assert done == []
        assert len(synced) == 1
        go_on.set()
        await journal.durable()
        assert done == ["second is durable", "draft is durable", "draft is durable"]
        assert len(synced) <= 3
        assert [payload[:1] for _, payload in bench.recovered()[1]] == [b"f", b"s", b"x", b"x"]
        assert not bench.failures

    run(tmp_path, test)


def test_whoever_waits_is_told_by_a_sync_that_others_asked_for(tmp_path: Path) -> None:
    """Else the next who waits stands behind them, with nothing left to sync: Broker.stop never ended."""
    told: list[str] = []

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()

        def go_on() -> None:
            journal.append(Kind.PLAIN, b"second", fold=itself)
            journal.when_durable_without_sync(lambda: told.append("second is durable"))

        journal.append(Kind.PLAIN, b"first", fold=itself)
        journal.when_durable(go_on)
        await journal.sync()
        assert journal.watermarks.synced == journal.watermarks.appended
        assert told == ["second is durable"]
        await journal.durable()

    run(tmp_path, test)


def test_what_is_synced_waits_for_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: a commit becomes durable while a large write, of somebody else's, is under way."""
    sync_on, write_on = threading.Event(), threading.Event()
    syncs: list[int] = []
    large: list[int] = []

    def slow_sync(files: list[File]) -> None:
        syncs.append(len(files))
        sync_on.wait()
        sync_files(files)

    def slow_write(runs: list[WriteRun]) -> None:
        if (size := sum(run.size for run in runs)) >= 500_000:
            large.append(size)
            write_on.wait()
        write_all(runs)

    async def test(bench: Bench) -> None:
        with opened_at_the_end(sync_on, write_on):
            await scene(bench)

    async def scene(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        monkeypatch.setattr("faircopy.journal.group_commit.sync_files", slow_sync)
        monkeypatch.setattr("faircopy.journal.group_commit.write_all", slow_write)
        journal.append(Kind.PLAIN, b"a", fold=itself)
        first = bench.loop.create_task(journal.durable())
        while not syncs:
            await asyncio.sleep(0)
        journal.append(Kind.PLAIN, b"b", fold=itself)
        second = bench.loop.create_task(journal.durable())
        while journal.watermarks.written < journal.watermarks.appended:
            await asyncio.sleep(0)
        journal.append(Kind.DRAFT, b"x" * 600_000, fold=itself)
        while not large:
            await asyncio.sleep(0)
        sync_on.set()
        await asyncio.gather(first, second)
        assert journal.watermarks.written < journal.watermarks.appended
        write_on.set()
        await journal.durable()
        assert not bench.failures

    run(tmp_path, test)


def test_after_a_failed_fsync_nothing_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I10: it is told once, to what ends the broker, and who waits waits on."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()

        def broken(file: File) -> None:
            raise StorageFailure("fdatasync: Input/output error")

        monkeypatch.setattr(File, "sync", broken)
        acked = []
        journal.append(Kind.PLAIN, b"lost", fold=itself)
        journal.when_durable(lambda: acked.append(1))
        await bench.idle()
        assert len(bench.failures) == 1
        assert not acked

    run(tmp_path, test)


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        preallocate = File.preallocate
        tries: list[int] = []

        def full(file: File, end: int) -> None:
            tries.append(end)
            raise NoSpace("no space")

        monkeypatch.setattr(File, "preallocate", full)
        monkeypatch.setattr("faircopy.journal.space_wait.RETRY_SECONDS", 0)
        acked = []
        journal.append(Kind.PLAIN, b"x" * 900_000, fold=itself)
        journal.when_durable(lambda: acked.append(1))
        while len(tries) < 3:
            await asyncio.sleep(0)
        with pytest.raises(JournalFull):
            journal.ensure_space()
        assert not acked
        monkeypatch.setattr(File, "preallocate", preallocate)
        await journal.durable()
        assert acked == [1]
        journal.ensure_space()
        assert [len(payload) for _, payload in bench.recovered()[1]] == [5, 900_000]
        assert not bench.failures

    run(tmp_path, test)
