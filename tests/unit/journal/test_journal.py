"""A journal on real files: append, group commit, recovery, torn tails, damage, reclaim."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, Entry, Kind, TransactionId
from faircopy.journal.errors import DamagedJournal, JournalFull
from faircopy.journal.format_4 import encode_header
from faircopy.journal.group_commit import WriteRun, write_all
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import Recovered
from faircopy.journal.reverse_list import ReverseWalk, read_from_cache, read_from_disk
from faircopy.journal.segments import sync_files
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace, StorageFailure
from faircopy.storage.file import File
from tests.many import many

IDENTITY = bytes(range(20))
SEGMENT_BYTES = 1 << 20


class Bench:
    """A loop's worth of journals in one directory."""

    def __init__(self, path: Path, durability: Durability = Durability.FSYNC) -> None:
        self.path = path
        self.loop = asyncio.get_running_loop()
        self.disk = DiskPool(self.loop, threads=2)
        self.failures: list[BaseException] = []
        self.durability = durability
        self._salt = 0

    def new_salt(self) -> int:
        self._salt += 1
        return self._salt

    def journal(self) -> Journal:
        options = JournalOptions(self.durability, SEGMENT_BYTES, self.new_salt, self.failures.append)
        return Journal(self.path, IDENTITY, self.disk, self.loop, options)

    def opened(self) -> Journal:
        """A journal whose segments were found, and not yet read."""
        journal = self.journal()
        journal.open()
        return journal

    def recovered(self, start: int = 0) -> tuple[Journal, list[tuple[int, bytes]]]:
        """A journal opened from disk, and the (position, payload) pairs that it holds from `start` on."""
        found: list[tuple[int, bytes]] = []
        journal = self.opened()

        def fold(recovered: Recovered) -> None:
            found.append((recovered.entry.position, bytes(recovered.payload)))

        journal.recover(start, fold)
        return journal, found


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


@pytest.mark.parametrize("durability", Durability)
def test_what_is_durable_is_there_after_a_restart(tmp_path: Path, durability: Durability) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        payloads = [bytes([n]) * (n * 1000) for n in range(50)]
        positions = [journal.append(Kind.PLAIN, payload).position for payload in payloads]
        await journal.durable()
        _, found = bench.recovered()
        assert found == list(zip(positions, payloads, strict=True))
        assert not bench.failures

    run(tmp_path, test, durability)


def test_entries_bear_the_epoch_of_the_leader_that_wrote_them(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        journal.leader_epoch = 7
        journal.append(Kind.PLAIN, b"second")
        await journal.durable()
        epochs: list[int] = []
        bench.opened().recover(0, lambda recovered: epochs.append(recovered.entry.leader_epoch))
        assert epochs == [0, 7]

    run(tmp_path, test)


def test_entries_go_on_over_segments(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for n in range(40):
            journal.append(Kind.PLAIN, bytes([n]) * 100_000)
        await journal.durable()
        assert len(list(tmp_path.glob("*.journal"))) > 3
        again, found = bench.recovered()
        assert [payload[0] for _, payload in found] == list(range(40))
        again.append(Kind.PLAIN, b"more")
        await again.durable()
        assert bench.recovered()[1][-1][1] == b"more"

    run(tmp_path, test)


def test_an_entry_larger_than_a_segment_has_one_of_its_own(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for size in (10, 3 * SEGMENT_BYTES, 10):
            journal.append(Kind.PLAIN, b"x" * size)
        await journal.durable()
        assert [len(payload) for _, payload in bench.recovered()[1]] == [10, 3 * SEGMENT_BYTES, 10]

    run(tmp_path, test)


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
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()
        monkeypatch.setattr(File, "sync", counted)
        called: list[int] = []
        for n in range(100):
            journal.append(Kind.PLAIN, b"x")
            journal.when_durable(partial(called.append, n))
        await journal.durable()
        assert called == list(range(100))
        assert len(syncs) == 1

    run(tmp_path, test)


def test_a_draft_is_written_without_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()
        synced = journal.watermarks.synced
        written: asyncio.Future[None] = bench.loop.create_future()
        journal.append(Kind.DRAFT, b"draft")
        journal.when_written(lambda: written.set_result(None))
        await written
        assert journal.watermarks.written == journal.watermarks.appended
        assert journal.watermarks.synced == synced

    run(tmp_path, test)


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=12), data=st.data())
def test_any_torn_tail_is_cut(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    """Whatever the disk has of the last write: what was durable stays, in order, and appending goes on."""
    path = tmp_path_factory.mktemp("journal")
    durable_count = data.draw(st.integers(0, len(sizes)))

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"zero")
        await journal.durable()
        for n, size in enumerate(sizes[:durable_count]):
            journal.append(Kind.PLAIN, bytes([n]) * size)
        await journal.durable()
        durable_end = journal.watermarks.appended
        for n, size in enumerate(sizes[durable_count:]):
            journal.append(Kind.PLAIN, bytes([n]) * size)
        await journal.durable()
        tear(only_segment(path), 64 + durable_end, 64 + journal.watermarks.appended, data)
        again, found = bench.recovered()
        assert [len(payload) for _, payload in found[: durable_count + 1]] == [4, *sizes[:durable_count]]
        again.append(Kind.PLAIN, b"after the crash")
        await again.durable()
        assert bench.recovered()[1] == [*found, (found[-1][0] + 64 + len(found[-1][1]), b"after the crash")]

    run(path, test)


def tear(path: Path, first: int, end: int, data: st.DataObject) -> None:
    """Lose any of the 512-byte sectors between two bytes of a file, as a power cut may."""
    content = bytearray(path.read_bytes())
    for at in range(first, end, 512):
        if data.draw(st.booleans()):
            content[at : min(at + 512, end)] = bytes(min(at + 512, end) - at)
    path.write_bytes(content)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_below_what_was_durable_is_never_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal")

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for n in range(5):
            journal.append(Kind.PLAIN, bytes([n]) * 700)
            await journal.durable()
        last = journal.append(Kind.PLAIN, b"tells that all before it was durable")
        await journal.durable()
        before = only_segment(path).read_bytes()
        byte = data.draw(st.integers(0, 64 + last.position - 1))
        flip(only_segment(path), byte)
        damaged = only_segment(path).read_bytes()
        with pytest.raises(DamagedJournal) as caught:
            bench.recovered()
        assert str(only_segment(path)) in str(caught.value)
        assert only_segment(path).read_bytes() == damaged != before

    run(path, test)


@pytest.mark.parametrize("lost_power", [False, True])
def test_without_a_loss_of_power_no_hole_is_a_torn_tail(tmp_path: Path, lost_power: bool) -> None:
    """If rot in an acked draft cut both it and the PREPARED after it, the commit would be aborted."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        draft = journal.append(Kind.DRAFT, b"x" * 100, transaction=TransactionId(1, 0, 1))
        journal.append(Kind.PREPARED, b"y" * 12, transaction=TransactionId(1, 0, 1))
        await journal.durable()
        flip(only_segment(tmp_path), 64 + draft.position + 80)
        found = Journal(
            bench.path, IDENTITY, bench.disk, bench.loop, journal._options._replace(lost_power=lost_power)
        )
        found.open()
        if lost_power:
            found.recover(0, lambda recovered: None)
            assert found.watermarks.appended == 0
        else:
            with pytest.raises(DamagedJournal, match="the machine has not lost power since"):
                found.recover(0, lambda recovered: None)

    run(tmp_path, test)


def test_damage_below_a_checkpoint_is_never_cut(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        entry = journal.append(Kind.PLAIN, b"x" * 100)
        await journal.durable()
        only_segment(tmp_path).write_bytes(only_segment(tmp_path).read_bytes()[: 64 + 50])
        with pytest.raises(DamagedJournal):
            bench.recovered(start=entry.end)

    run(tmp_path, test)


def test_an_entry_that_cannot_be_folded_is_damage(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"good")
        odd = journal.append(Kind.PLAIN, b"odd")
        await journal.durable()

        def fold(recovered: Recovered, error: Exception) -> None:
            if bytes(recovered.payload) == b"odd":
                raise error

        for odd_error in (KeyError("id"), InvariantViolation("I4"), RecursionError()):
            with pytest.raises(DamagedJournal, match="can't follow those before it") as caught:
                bench.opened().recover(0, partial(fold, error=odd_error))
            assert (caught.value.path, caught.value.byte) == (only_segment(tmp_path), 64 + odd.position)
        for error in (StorageFailure("no"), OSError("no")):
            with pytest.raises(type(error)):
                bench.opened().recover(0, partial(fold, error=error))

    run(tmp_path, test)


def test_a_segment_of_another_journal_is_refused(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"x")
        await journal.durable()
        options = JournalOptions(Durability.FSYNC, SEGMENT_BYTES, bench.new_salt, bench.failures.append)
        other = Journal(tmp_path, bytes(20), bench.disk, bench.loop, options)
        with pytest.raises(DamagedJournal, match="belongs to another journal"):
            other.open()

    run(tmp_path, test)


def test_no_client_can_have_a_torn_tail_taken_for_damage(tmp_path: Path) -> None:
    """Its messages hold what would be an entry there, and say that all was durable: but the salt is not
    known.
    """

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        torn = journal.append(Kind.PLAIN, b"a" * 100)
        at = torn.end + HEADER_BYTES
        forged = Entry(Kind.PLAIN, at, HEADER_BYTES, 0, 1, -1, NO_TRANSACTION, at)
        seed = journal.segments[0].seed
        headers = [encode_header(forged, b"", guess) for guess in (0, seed)]
        assert len(headers[0]) == HEADER_BYTES
        for header, is_known in zip(headers, (False, True), strict=True):
            journal.append(Kind.PLAIN, header)
            await journal.durable()
            flip(only_segment(tmp_path), HEADER_BYTES + torn.position)
            with pytest.raises(DamagedJournal) if is_known else contextlib.nullcontext():
                journal, found = bench.recovered()
                assert found == []
                torn = journal.append(Kind.PLAIN, b"a" * 100)

    run(tmp_path, test)


def test_old_entries_after_a_cut_never_come_back(tmp_path: Path) -> None:
    """A torn write leaves a sound entry after a bad one, which a new one of equal length must not revive."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"durable")
        await journal.durable()
        bad = journal.append(Kind.PLAIN, b"a" * 100)
        journal.append(Kind.PLAIN, b"zombie")
        await journal.durable()
        flip(only_segment(tmp_path), 64 + bad.position + 70)
        again, found = bench.recovered()
        assert [payload for _, payload in found] == [b"durable"]
        again.append(Kind.PLAIN, b"b" * 100)
        await again.durable()
        assert [payload for _, payload in bench.recovered()[1]] == [b"durable", b"b" * 100]

    run(tmp_path, test)


def test_after_a_failed_fsync_nothing_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I10: it is told once, to what ends the broker, and who waits waits on."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()

        def broken(file: File) -> None:
            raise StorageFailure("fdatasync: Input/output error")

        monkeypatch.setattr(File, "sync", broken)
        acked = []
        journal.append(Kind.PLAIN, b"lost")
        journal.when_durable(lambda: acked.append(1))
        await asyncio.sleep(0.05)
        assert len(bench.failures) == 1
        assert not acked

    run(tmp_path, test)


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()
        preallocate = File.preallocate

        def full(file: File, end: int) -> None:
            raise NoSpace("no space")

        monkeypatch.setattr(File, "preallocate", full)
        monkeypatch.setattr("faircopy.journal.space_wait.RETRY_SECONDS", 0.05)
        acked = []
        journal.append(Kind.PLAIN, b"x" * 900_000)
        journal.when_durable(lambda: acked.append(1))
        await asyncio.sleep(0.1)
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


def test_reclaim_keeps_what_is_needed(tmp_path: Path) -> None:
    """I7."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        entries = [journal.append(Kind.PLAIN, b"x" * 500_000) for _ in range(8)]
        await journal.durable()
        for segment in journal.reclaim(entries[5].position):
            segment.path.unlink()
        assert journal.start_position <= entries[5].position
        assert journal.start_position > entries[2].position
        _, found = bench.recovered(start=entries[5].position)
        assert [position for position, _ in found] == [entry.position for entry in entries[5:]]

    run(tmp_path, test)


@settings(max_examples=40, deadline=None)
@given(
    steps=many(st.tuples(st.integers(0, 3), st.integers(0, 40_000)), 40, least=1),
    cached=st.booleans(),
)
def test_the_reverse_list_gives_each_draft_of_its_transaction(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], cached: bool
) -> None:
    """I3: however many transactions are interleaved, over however many segments."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        heads: dict[int, int] = {}
        expected: dict[int, list[bytes]] = {}
        for number, (owner, size) in enumerate(steps):
            payload = bytes([number]) * size
            transaction = TransactionId(owner, 0, 1)
            entry = journal.append(
                Kind.DRAFT, payload, previous=heads.get(owner, -1), transaction=transaction, records=1
            )
            heads[owner] = entry.position
            expected.setdefault(owner, []).append(payload)
        await journal.durable()
        for owner, head in heads.items():
            walk = ReverseWalk(
                journal, TransactionId(owner, 0, 1), read_from_cache if cached else read_from_disk
            )
            drafts = walk.collect(head, keep_bytes=1 << 30)
            assert [bytes(draft.payload or b"") for draft in drafts] == expected[owner]
            again = [bytes(walk.payload(draft.entry)) for draft in walk.collect(head, keep_bytes=-1)]
            assert again == expected[owner]

    run(tmp_path_factory.mktemp("journal"), test)


def test_rot_in_a_draft_is_found_where_it_is(tmp_path: Path) -> None:
    """Also in the link to the draft before: what it leads to by chance is not the one that is damaged."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        transaction, head = TransactionId(1, 0, 1), -1
        drafts = []
        for size in (0, 5, 300):
            journal.append(Kind.PLAIN, b"between")
            drafts.append(journal.append(Kind.DRAFT, b"x" * size, previous=head, transaction=transaction))
            head = drafts[-1].position
        await journal.durable()
        segment = journal.segments.holding(head)
        walk = ReverseWalk(journal, transaction, read_from_disk)
        walk.check(head)
        for draft in drafts:
            first = segment.at(draft.position)
            for byte in range(first, first + draft.length):
                for bits in (1, 0x6B, 0x80, 0xFF):
                    with flipped(segment.path, byte, bits), pytest.raises(DamagedJournal) as damaged:
                        ReverseWalk(journal, transaction, read_from_disk).check(head)
                    assert damaged.value.byte == first, (byte - first, bits)

    run(tmp_path, test)


@contextlib.contextmanager
def flipped(path: Path, byte: int, bits: int) -> Iterator[None]:
    """A file with some bits of one byte changed for a while."""
    with path.open("r+b") as file:
        file.seek(byte)
        before = file.read(1)[0]
        for value in (before ^ bits, before):
            file.seek(byte)
            file.write(bytes([value]))
            file.flush()
            if value != before:
                yield


def test_what_is_written_waits_for_no_fdatasync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts are acked once written, even while another's fdatasync is under way, and share the next one."""
    synced: list[int] = []
    go_on = threading.Event()

    def slow_sync(files: list[File]) -> None:
        synced.append(len(files))
        assert go_on.wait(10)
        sync_files(files)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()
        monkeypatch.setattr("faircopy.journal.group_commit.sync_files", slow_sync)
        done: list[str] = []
        journal.append(Kind.PLAIN, b"second")
        journal.when_durable(lambda: done.append("second is durable"))
        while not synced:
            await asyncio.sleep(0.001)
        for size in (10, 1_000_000):
            written: asyncio.Future[None] = bench.loop.create_future()
            journal.append(Kind.DRAFT, b"x" * size)
            journal.when_written(partial(written.set_result, None))
            await asyncio.wait_for(written, 10)
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
            journal.append(Kind.PLAIN, b"second")
            journal.when_durable_without_sync(lambda: told.append("second is durable"))

        journal.append(Kind.PLAIN, b"first")
        journal.when_durable(go_on)
        await journal.sync()
        assert journal.watermarks.synced == journal.watermarks.appended
        assert told == ["second is durable"]
        await asyncio.wait_for(journal.durable(), 10)

    run(tmp_path, test)


def test_what_is_synced_waits_for_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: a commit becomes durable while a large write, of somebody else's, is under way."""
    sync_on, write_on = threading.Event(), threading.Event()
    syncs: list[int] = []

    def slow_sync(files: list[File]) -> None:
        syncs.append(len(files))
        assert sync_on.wait(10)
        sync_files(files)

    def slow_write(runs: list[WriteRun]) -> None:
        assert sum(run.size for run in runs) < 500_000 or write_on.wait(10)
        write_all(runs)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first")
        await journal.durable()
        monkeypatch.setattr("faircopy.journal.group_commit.sync_files", slow_sync)
        monkeypatch.setattr("faircopy.journal.group_commit.write_all", slow_write)
        journal.append(Kind.PLAIN, b"a")
        first = bench.loop.create_task(journal.durable())
        while not syncs:
            await asyncio.sleep(0.001)
        journal.append(Kind.PLAIN, b"b")
        second = bench.loop.create_task(journal.durable())
        await asyncio.sleep(0.01)
        journal.append(Kind.DRAFT, b"x" * 600_000)
        await asyncio.sleep(0.01)
        sync_on.set()
        await asyncio.wait_for(asyncio.gather(first, second), 5)
        write_on.set()
        await journal.durable()
        assert not bench.failures

    run(tmp_path, test)
