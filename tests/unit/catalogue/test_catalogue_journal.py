"""The catalogue's journal on real files: what is written is there after a reopen, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faircopy.catalogue.change import CatalogueChange, encode_change
from faircopy.catalogue.journal import CATALOGUE_IDENTITY, TABLE, CatalogueJournal
from faircopy.journal.entry import Entry, Kind
from faircopy.journal.errors import DamagedJournal, JournalFull
from faircopy.journal.segment import HEADER_BYTES
from faircopy.journal.segments import sync_files
from faircopy.storage.failures import NoSpace
from faircopy.storage.file import File
from faircopy.storage.state_store import Change
from faircopy.storage.versioned_map import ABSENT, Conflict
from tests.unit.catalogue.opened import Opened, files_of, run
from tests.unit.journal.journal_bench import flip, itself

SMALL_SEGMENT = 1_000


async def begun(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The task that does this work, which has begun: what it appends is appended."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


@contextmanager
def slow_fsyncs(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Journals are not fsynced before this event, or the end."""
    may_sync = threading.Event()

    def sync(files: list[File]) -> None:
        may_sync.wait()
        sync_files(files)

    with monkeypatch.context() as patched:
        patched.setattr("faircopy.journal.group_commit.sync_files", sync)
        try:
            yield may_sync
        finally:
            may_sync.set()


def checkpointed(opened: Opened) -> tuple[int, dict[str, int]]:
    """The position of the checkpoint, and the versions of its keys."""
    value = opened.store.get("checkpoints", CATALOGUE_IDENTITY)
    assert value is not None
    rows = opened.store.scan(TABLE, b"")
    return json.loads(value)["position"], {key.decode(): int.from_bytes(row[:8]) for key, row in rows}


# -- reopening -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoints", [(), (1,), (3,), (1, 2, 3)])
def test_what_is_written_is_there_after_a_reopen_with_the_same_versions(
    tmp_path: Path, checkpoints: tuple[int, ...]
) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            for number in range(4):
                await opened.catalogue.transact({}, {"same": b"%d" % number, f"key {number}": "ü".encode()})
                if number in checkpoints:
                    await opened.catalogue.checkpoint()
            before = opened.contents
        assert len(before) == 5
        for _ in range(2):
            with Opened(tmp_path) as opened:
                assert opened.contents == before
        with Opened(tmp_path) as opened:
            version = before["same"].version
            with pytest.raises(Conflict):
                await opened.catalogue.transact({"same": before["key 2"].version}, {"same": b"lost"})
            assert await opened.catalogue.transact({"same": version}, {"same": b"new"}) > version

    run(test)


@pytest.mark.parametrize("checkpoints", [(), ("made",), ("deleted",), ("made", "deleted")])
def test_a_deleted_key_is_deleted_after_a_reopen(tmp_path: Path, checkpoints: tuple[str, ...]) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            made = await opened.catalogue.transact({}, {"a": b"1", "b": b"1"})
            if "made" in checkpoints:
                await opened.catalogue.checkpoint()
            await opened.catalogue.transact({"a": made}, {"a": None})
            if "deleted" in checkpoints:
                await opened.catalogue.checkpoint()
                assert checkpointed(opened)[1] == {"b": made}
        with Opened(tmp_path) as opened:
            assert opened.contents == {"b": (b"1", made)}
            again = await opened.catalogue.transact({"a": ABSENT}, {"a": b"2"})
            await opened.catalogue.checkpoint()
        with Opened(tmp_path) as opened:
            assert opened.contents == {"a": (b"2", again), "b": (b"1", made)}

    run(test)


def test_what_is_found_at_a_start_is_in_the_next_checkpoint(tmp_path: Path) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            version = await opened.catalogue.transact({}, {"a": b"1"})
        with Opened(tmp_path) as opened:
            await opened.catalogue.checkpoint()
            assert checkpointed(opened) == (opened.catalogue.journal.watermarks.appended, {"a": version})
            assert not opened.catalogue.bytes_since_checkpoint

    run(test)


def test_files_below_a_checkpoint_are_deleted(tmp_path: Path) -> None:
    async def test() -> None:
        with Opened(tmp_path, SMALL_SEGMENT) as opened:
            for number in range(20):
                await opened.catalogue.transact({}, {f"key {number}": b"x" * 200})
            assert len(files_of(tmp_path)) > 5
            await opened.catalogue.checkpoint()
            assert len(files_of(tmp_path)) == 1
            for number in range(20, 30):
                await opened.catalogue.transact({}, {f"key {number}": b"x" * 200})
            before, files = opened.contents, files_of(tmp_path)
        assert len(files) > 2
        with Opened(tmp_path, SMALL_SEGMENT) as opened:
            assert opened.contents == before
            assert len(before) == 30
            assert files_of(tmp_path) == files

    run(test)


def test_a_checkpoint_has_nothing_beyond_its_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else the entries after it would find versions that contradict them, at the next start."""

    async def test() -> None:
        with Opened(tmp_path) as opened:
            catalogue = opened.catalogue
            marks = catalogue.journal.watermarks
            first = await catalogue.transact({}, {"a": b"1", "gone": b"1"})
            with slow_fsyncs(monkeypatch) as may_sync:
                second = marks.appended
                tasks = [await begun(catalogue.transact({"a": first}, {"a": b"2", "b": b"2"}))]
                position = marks.appended
                tasks.append(await begun(catalogue.checkpoint()))
                tasks.append(await begun(catalogue.transact({"a": second}, {"a": b"3", "gone": None})))
                tasks.append(await begun(catalogue.transact({"c": ABSENT, "gone": ABSENT}, {"c": b"4"})))
                may_sync.set()
                await asyncio.gather(*tasks)
            assert checkpointed(opened) == (position, {"a": second, "b": second, "gone": first})
            before = opened.contents
        with Opened(tmp_path) as opened:
            assert opened.contents == before
            await opened.catalogue.checkpoint()
            assert checkpointed(opened)[1] == {key: value.version for key, value in before.items()}

    run(test)


def test_files_above_a_checkpoint_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with Opened(tmp_path, SMALL_SEGMENT) as opened:
            catalogue, store_rows = opened.catalogue, opened.store.write
            await catalogue.transact({}, {"a": b"1"})
            later = [catalogue.transact({}, {f"later {number}": b"x" * 900}) for number in range(3)]

            async def write(rows: Iterable[Change]) -> None:
                await asyncio.gather(*later)
                await store_rows(rows)

            with monkeypatch.context() as patched:
                patched.setattr(opened.store, "write", write)
                await catalogue.checkpoint()
            before = opened.contents
        assert len(before) == 4
        with Opened(tmp_path, SMALL_SEGMENT) as opened:
            assert opened.contents == before

    run(test)


def test_a_checkpoint_that_fails_is_in_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is there another one meanwhile, which would not have what the first one has."""

    async def test() -> None:
        with Opened(tmp_path) as opened:
            version = await opened.catalogue.transact({}, {"a": b"1"})

            async def refuse(_rows: object) -> None:
                with monkeypatch.context() as patched:
                    patched.setattr(opened.store, "write", store_rows)
                    await opened.catalogue.transact({}, {"b": b"1"})
                    await opened.catalogue.checkpoint()
                raise NoSpace("no space")

            store_rows = opened.store.write
            with monkeypatch.context() as patched:
                patched.setattr(opened.store, "write", refuse)
                with pytest.raises(NoSpace):
                    await opened.catalogue.checkpoint()
            assert opened.store.get("checkpoints", CATALOGUE_IDENTITY) is None
            await opened.catalogue.checkpoint()
            assert checkpointed(opened)[1] == {key: value.version for key, value in opened.contents.items()}
            assert opened.contents["a"].version == version

    run(test)


# -- two views -----------------------------------------------------------------------------------------------


def test_nothing_is_read_or_acked_before_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            catalogue = opened.catalogue
            made = await catalogue.transact({}, {"a": b"1", "gone": b"1"})
            with slow_fsyncs(monkeypatch) as may_sync:
                writing = await begun(catalogue.transact({"a": made}, {"a": b"2", "b": b"2", "gone": None}))
                await catalogue.journal.kept()
                assert opened.contents == {"a": (b"1", made), "gone": (b"1", made)}
                assert catalogue.get("b") is None
                assert catalogue.get("gone") == (b"1", made)
                assert not writing.done()
                may_sync.set()
                version = await writing
            assert opened.contents == {"a": (b"2", version), "b": (b"2", version)}
            assert catalogue.get("gone") is None

    run(test)


def test_who_rests_on_what_was_overtaken_is_refused_once_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            catalogue = opened.catalogue
            made = await catalogue.transact({}, {"a": b"1"})
            with slow_fsyncs(monkeypatch) as may_sync:
                first = await begun(catalogue.transact({"a": made}, {"a": b"2"}))
                appended = catalogue.journal.watermarks.appended
                second = await begun(catalogue.transact({"a": made}, {"a": b"3"}))
                await catalogue.journal.kept()
                assert not second.done()
                may_sync.set()
                with pytest.raises(Conflict):
                    await second
                assert catalogue.get("a") == (b"2", await first)
            assert catalogue.journal.watermarks.appended == appended

    run(test)


def test_the_write_of_a_cancelled_writer_is_carried_out(tmp_path: Path) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            writing = await begun(opened.catalogue.transact({}, {"a": b"1"}))
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            await opened.catalogue.journal.durable()
            assert opened.catalogue.get("a") is not None
            with pytest.raises(Conflict):
                await opened.catalogue.transact({"a": ABSENT}, {"a": b"2"})
        with Opened(tmp_path) as opened:
            assert [value for value, _ in opened.contents.values()] == [b"1"]

    run(test)


# -- a full disk ---------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_before_anything_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        with Opened(tmp_path, SMALL_SEGMENT) as opened:
            catalogue = opened.catalogue
            tried = asyncio.Event()
            loop = asyncio.get_running_loop()

            def full(_file: File, _end: int) -> None:
                loop.call_soon_threadsafe(tried.set)
                raise NoSpace("no space")

            monkeypatch.setattr("faircopy.journal.space_wait.RETRY_SECONDS", 0)
            with monkeypatch.context() as patched:
                patched.setattr(File, "preallocate", full)
                waiting = await begun(catalogue.transact({}, {"a": b"1"}))
                await tried.wait()
                while not catalogue.journal.waits_for_space:
                    await asyncio.sleep(0)
                appended = catalogue.journal.watermarks.appended
                refused = await begun(catalogue.transact({}, {"b": b"2"}))
                assert isinstance(refused.exception(), JournalFull)
                assert catalogue.journal.watermarks.appended == appended
                assert not waiting.done()
            version = await waiting
            assert opened.contents == {"a": (b"1", version)}
            await catalogue.transact({"b": ABSENT}, {"b": b"3"})

    run(test)


def test_what_the_reserve_is_for_is_written(tmp_path: Path) -> None:
    """A deletion makes room, so a shortage that is only seen does not refuse it."""

    async def test() -> None:
        with Opened(tmp_path) as opened:
            await opened.catalogue.transact({}, {"a": b"1"})
            opened.space.release_reserve(NoSpace("no space"))
            assert opened.space.shortage is not None
            await opened.catalogue.transact({}, {"a": None})
            assert opened.contents == {}

    run(test)


# -- damage --------------------------------------------------------------------------------------------------


async def append(catalogue: CatalogueJournal, kind: Kind, payload: bytes) -> Entry:
    """Append what the catalogue itself would never write."""
    entry = catalogue.journal.append(kind, payload, fold=itself)
    await catalogue.journal.durable()
    return entry


async def with_an_odd_entry(directory: Path, kind: Kind, payload: bytes) -> Entry:
    """A catalogue with one key before such an entry, and one after it."""
    with Opened(directory) as opened:
        await opened.catalogue.transact({}, {"before": b"1"})
        entry = await append(opened.catalogue, kind, payload)
        await opened.catalogue.transact({}, {"after": b"1"})
    return entry


CONTRADICTS = encode_change(CatalogueChange({"before": 7}, {"before": b"2"}))


def test_an_entry_that_rests_on_what_is_not_there_is_damage(tmp_path: Path) -> None:
    async def test() -> None:
        odd = await with_an_odd_entry(tmp_path, Kind.CHANGE, CONTRADICTS)
        with pytest.raises(DamagedJournal, match="before has version 0, not 7") as caught:
            Opened(tmp_path)
        (file,) = files_of(tmp_path)
        assert (caught.value.path, caught.value.byte) == (file, HEADER_BYTES + odd.position)

    run(test)


def test_such_an_entry_is_passed_over_if_somebody_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        odd = await with_an_odd_entry(tmp_path, Kind.CHANGE, CONTRADICTS)
        passed_over: list[DamagedJournal] = []
        with Opened(tmp_path, passed_over=passed_over) as opened:
            assert [each.byte for each in passed_over] == [HEADER_BYTES + odd.position]
            assert {key: value for key, (value, _) in opened.contents.items()} == {
                "after": b"1",
                "before": b"1",
            }
            before = opened.contents
            await opened.catalogue.checkpoint()
        with Opened(tmp_path) as opened:
            assert opened.contents == before

    run(test)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.PLAIN, encode_change(CatalogueChange({}, {"odd": b"1"}))),
        (Kind.CHANGE, b"not JSON"),
        (Kind.CHANGE, b"[]"),
        (Kind.CHANGE, b'{"rests_on": {"before": "now"}}'),
        (Kind.CHANGE, b'{"set": {"odd": 1}}'),
    ],
)
def test_an_entry_that_says_nothing_known_stops_the_opening(
    tmp_path: Path, kind: Kind, payload: bytes
) -> None:
    """Nobody may pass it over: a newer faircopy may have written it."""

    async def test() -> None:
        odd = await with_an_odd_entry(tmp_path, kind, payload)
        (file,) = files_of(tmp_path)
        passed_over: list[DamagedJournal] = []
        for wanted in (None, passed_over):
            with pytest.raises(DamagedJournal) as caught:
                Opened(tmp_path, passed_over=wanted)
            assert (caught.value.path, caught.value.byte) == (file, HEADER_BYTES + odd.position)
        assert passed_over == []

    run(test)


def test_a_flipped_byte_below_what_was_durable_is_damage(tmp_path: Path) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            for number in range(4):
                position = await opened.catalogue.transact({}, {"a": b"%d" % number})
        (file,) = files_of(tmp_path)
        damaged = position // 2
        flip(file, HEADER_BYTES + damaged)
        found = file.read_bytes()
        with pytest.raises(DamagedJournal) as caught:
            Opened(tmp_path)
        entry_bytes = position // 3
        assert caught.value.path == file
        assert caught.value.byte == HEADER_BYTES + damaged // entry_bytes * entry_bytes
        assert file.read_bytes() == found

    run(test)


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_torn_tail_is_cut(tmp_path: Path, *, has_checkpoint: bool) -> None:
    async def test() -> None:
        with Opened(tmp_path) as opened:
            first = await opened.catalogue.transact({}, {"a": b"1"})
            if has_checkpoint:
                await opened.catalogue.checkpoint()
            torn = await opened.catalogue.transact({"a": first}, {"a": b"2"})
            end = opened.catalogue.journal.watermarks.appended
        (file,) = files_of(tmp_path)
        content = bytearray(file.read_bytes())
        content[HEADER_BYTES + end - 10 : HEADER_BYTES + end - 5] = bytes(5)
        file.write_bytes(content)
        with Opened(tmp_path) as opened:
            assert opened.catalogue.journal.was_torn
            assert opened.contents == {"a": (b"1", first)}
            assert await opened.catalogue.transact({"a": first}, {"a": b""}) == torn
        with Opened(tmp_path) as opened:
            assert not opened.catalogue.journal.was_torn
            assert opened.contents == {"a": (b"", torn)}

    run(test)


def test_a_lost_journal_is_damage(tmp_path: Path) -> None:
    """A checkpoint without its journal would take back what was acknowledged after it."""

    async def test() -> None:
        with Opened(tmp_path) as opened:
            await opened.catalogue.transact({}, {"a": b"1"})
            await opened.catalogue.checkpoint()
        for file in files_of(tmp_path):
            file.unlink()
        with pytest.raises(DamagedJournal, match="has no segments"):
            Opened(tmp_path)

    run(test)
