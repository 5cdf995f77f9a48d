"""A partition on real files: what is visible is the fold of its journal, whatever happens on the way."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from faircopy.copier.fold import ApplyOrder, Standing
from faircopy.copier.producers import OutOfOrderSequence, StaleEpoch
from faircopy.copier.span_chunk import Span
from faircopy.datalog.read import DamagedLog
from faircopy.datalog.segment import LogSegment
from faircopy.journal.entry import HEADER_BYTES, TransactionId
from faircopy.journal.options import Durability
from faircopy.partition import partition
from faircopy.partition.partition import NoOpenTransaction
from tests.known_transactions import known_transactions
from tests.unit.copier.partition_bench import PartitionBench, run

T1 = TransactionId(7, 0, 1)
T2 = TransactionId(8, 0, 1)


def test_an_open_transaction_is_not_in_the_log(tmp_path: Path) -> None:
    """P1, P4."""

    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"draft")
        assert await bench.plain(b"plain") == 0
        assert await bench.visible() == [b"plain"]
        assert all(b"draft" not in path.read_bytes() for path in (tmp_path / "log").iterdir())
        await bench.prepare(T1)
        assert await bench.visible() == [b"plain"]
        await bench.apply(T1)
        assert await bench.visible() == [b"plain", b"draft"]

    run(tmp_path, test)


def test_a_discarded_transaction_never_shows(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"draft")
        await bench.discard(T1)
        await bench.plain(b"plain")
        bench.restart()
        assert await bench.visible() == [b"plain"]
        assert bench.partition.standing(T1) is Standing.DISCARDED

    run(tmp_path, test)


@pytest.mark.parametrize("durability", Durability)
def test_applying_again_does_nothing(tmp_path: Path, durability: Durability) -> None:
    """I4, also after a restart and after a checkpoint."""

    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"a", b"b")
        await bench.prepare(T1)
        await bench.apply(T1)
        await bench.apply(T1)
        assert await bench.visible() == [b"a", b"b"]
        await bench.partition.checkpoint()
        bench.restart()
        await bench.apply(T1)
        assert await bench.visible() == [b"a", b"b"]
        await bench.apply(T1, finished=1)
        await bench.apply(T1, finished=1)
        assert await bench.visible() == [b"a", b"b"]

    run(tmp_path, test, durability=durability)


def test_a_transaction_is_forgotten_when_it_is_finished(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        for number in range(1, 20):
            transaction = TransactionId(7, 0, number)
            await bench.draft(transaction, number - 1, b"x")
            await bench.prepare(transaction)
            await bench.apply(transaction, finished=number - 1)
        assert len(known_transactions(bench.partition.state)) == 1
        await bench.partition.checkpoint()
        bench.restart()
        assert list(known_transactions(bench.partition.state)) == [TransactionId(7, 0, 19)]

    run(tmp_path, test)


def test_a_forgotten_producer_leaves_nothing_behind(tmp_path: Path) -> None:
    """Otherwise every transactional id that is used once would be remembered for ever."""

    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"applied")
        await bench.prepare(T1)
        await bench.apply(T1)
        await bench.draft(T2, 0, b"discarded")
        await bench.discard(T2)
        other = TransactionId(9, 0, 1)
        await bench.draft(other, 0, b"open")
        await bench.partition.checkpoint()
        bench.partition.forget_producers([7, 8, 10])
        end = bench.partition.state.position
        bench.partition.forget_producers([7, 8, 10])
        await bench.journal.durable()
        assert bench.partition.state.position == end, "nothing is written for what is not known"
        for _ in range(2):
            assert list(known_transactions(bench.partition.state)) == [other]
            assert [producer_id for producer_id, _ in bench.partition.state.producers.items()] == [9]
            bench.restart()
        await bench.partition.checkpoint()
        bench.restart()
        assert [producer_id for producer_id, _ in bench.partition.state.producers.items()] == [9]
        assert await bench.visible() == [b"applied"]

    run(tmp_path, test)


def test_many_producers_are_forgotten_in_several_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(bench: PartitionBench) -> None:
        monkeypatch.setattr(partition, "FORGOTTEN_AT_ONCE", 3)
        for producer_id in range(10):
            await bench.draft(TransactionId(producer_id, 0, 1), 0, b"x")
            await bench.discard(TransactionId(producer_id, 0, 1))
        before = bench.partition.state.position
        bench.partition.forget_producers(range(10))
        assert bench.partition.state.position == before + 4 * HEADER_BYTES + 10 * 8
        assert not known_transactions(bench.partition.state)
        await bench.journal.durable()
        bench.restart()
        assert not known_transactions(bench.partition.state)

    run(tmp_path, test)


@pytest.mark.parametrize("recent_bytes", [0, 5_000_000, 100_000_000])
def test_a_large_transaction_is_copied_in_pieces(tmp_path: Path, recent_bytes: int) -> None:
    """From the journal, from memory, or the first part from here and the rest from there."""

    async def test(bench: PartitionBench) -> None:
        values = [bytes([n % 256]) * 100_000 for n in range(150)]
        for sequence, value in enumerate(values):
            await bench.draft(T1, sequence, value)
            await bench.draft(T2, sequence, b"other")
        await bench.prepare(T1)
        await bench.apply(T1)
        plain = await bench.plain(b"after")
        assert plain == 150
        assert await bench.visible() == [*values, b"after"]
        bench.restart()
        assert await bench.visible() == [*values, b"after"]

    run(tmp_path, test, log_segment_bytes=1 << 20, recent_bytes=recent_bytes)


def test_a_draft_needs_an_open_transaction(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        partition = bench.partition
        with pytest.raises(NoOpenTransaction):
            partition.open_transaction_of("a", 7, 0)
        partition.open_transaction(T1, "a", is_durable=False)
        assert partition.open_transaction_of("a", 7, 0) == T1
        with pytest.raises(NoOpenTransaction):
            partition.open_transaction_of("a", 7, 1)
        await bench.discard(T1)
        with pytest.raises(NoOpenTransaction):
            partition.open_transaction_of("a", 7, 0)

    run(tmp_path, test)


def test_a_promise_that_is_taken_back_is_given_again(tmp_path: Path) -> None:
    """A kill took the decision to commit, so the transaction goes on."""

    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"before")
        await bench.prepare(T1)
        bench.restart()
        bench.partition.resume_transaction(T1, "a", is_durable=False)
        assert bench.partition.standing(T1) is Standing.OPEN
        assert bench.partition.state.prepared == set()
        assert bench.partition.open_transaction_of("a", T1.producer_id, T1.producer_epoch) == T1
        await bench.draft(T1, 1, b"after")
        bench.restart()
        assert bench.partition.standing(T1) is Standing.OPEN
        await bench.prepare(T1)
        bench.restart()
        await bench.apply(T1)
        assert await bench.visible() == [b"before", b"after"]

    run(tmp_path, test)


def test_what_is_open_goes_on_without_an_entry(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"draft")
        bench.restart()
        end = bench.journal.watermarks.appended
        for transaction in (T1, T2):
            bench.partition.resume_transaction(transaction, "a", is_durable=False)
        assert bench.journal.watermarks.appended == end

    run(tmp_path, test)


@pytest.mark.parametrize("end", ["prepare", "apply", "discard"])
def test_a_transaction_that_has_ended_takes_no_drafts(tmp_path: Path, end: str) -> None:
    """Whatever a coordinator says: the partition would not start again with such a draft."""

    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"before")
        if end == "apply":
            await bench.prepare(T1)
        await getattr(bench, end)(T1)
        bench.restart()
        bench.partition.open_transaction(T1, "a", is_durable=False)
        appended = bench.journal.watermarks.appended
        with pytest.raises(NoOpenTransaction, match="takes no more batches"):
            await bench.draft(T1, 1, b"after")
        assert bench.journal.watermarks.appended == appended
        bench.restart()

    run(tmp_path, test)


def test_sequences_are_checked_where_batches_come_in(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        first = await bench.plain(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
        second = await bench.plain(b"c", producer_id=1, producer_epoch=0, base_sequence=2)
        assert (first, second) == (0, 2)
        assert await bench.plain(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0) == 0
        with pytest.raises(OutOfOrderSequence):
            await bench.plain(b"z", producer_id=1, producer_epoch=0, base_sequence=4)
        bench.restart()
        assert await bench.plain(b"c", producer_id=1, producer_epoch=0, base_sequence=2) == 2
        assert await bench.plain(b"d", producer_id=1, producer_epoch=1, base_sequence=0) == 3
        with pytest.raises(StaleEpoch):
            await bench.plain(b"e", producer_id=1, producer_epoch=0, base_sequence=3)
        assert await bench.visible() == [b"a", b"b", b"c", b"d"]

    run(tmp_path, test)


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_what_is_sent_again_is_known_after_a_restart(tmp_path: Path, is_checkpointed: bool) -> None:
    async def test(bench: PartitionBench) -> None:
        first = await bench.plain(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        if is_checkpointed:
            await bench.partition.checkpoint()
        bench.restart()
        assert await bench.plain(b"a", producer_id=1, producer_epoch=0, base_sequence=0) == first
        assert await bench.visible() == [b"a"]

    run(tmp_path, test)


def test_a_trimmed_log_begins_later(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        for n in range(40):
            await bench.plain(bytes([n]) * 2000)
        await bench.visible()
        await bench.done(lambda done: bench.partition.trim(25, done))
        await bench.plain(b"last")
        values = await bench.visible()
        assert [value[0] for value in values] == [*range(25, 40), b"l"[0]]
        bench.restart()
        assert await bench.visible() == values
        await bench.partition.checkpoint()
        await bench.idle()
        assert min(int(path.stem) for path in (tmp_path / "log").glob("*.log")) > 0

    run(tmp_path, test)


def test_a_trim_leaves_what_the_last_checkpoint_begins_from(tmp_path: Path) -> None:
    """I6: the checkpoint's end lies in a segment that the trim lets go."""

    async def test(bench: PartitionBench) -> None:
        for n in range(20):
            await bench.plain(bytes([n]) * 2000)
        await bench.partition.checkpoint()
        for n in range(20, 40):
            await bench.plain(bytes([n]) * 2000)
        await bench.done(lambda done: bench.partition.trim(35, done))
        values = await bench.visible()
        await bench.idle()
        bench.restart()
        assert await bench.visible() == values
        assert len(values) == 5

    run(tmp_path, test)


def test_a_trim_leaves_what_the_last_checkpoint_has_as_the_log(tmp_path: Path) -> None:
    """I6: under durability `os` a loss of power can take the TRIM, and then the log starts where it did."""

    def bases() -> list[int]:
        return sorted(int(path.stem) for path in (tmp_path / "log").glob("*.log"))

    async def test(bench: PartitionBench) -> None:
        for n in range(40):
            await bench.plain(bytes([n]) * 2000)
        await bench.partition.checkpoint()
        whole = bases()
        await bench.done(lambda done: bench.partition.trim(25, done))
        await bench.idle()
        assert bases() == whole
        await bench.partition.checkpoint()
        await bench.let_go()  # the segments are deleted
        assert bases() == [base for base in whole if base >= bench.log.first_base]
        assert 0 < bench.log.first_base <= 25

    run(tmp_path, test)


def test_what_a_crash_left_of_a_trimmed_log_goes_at_the_next_start(tmp_path: Path) -> None:
    """Also if nothing is written any more, so that no checkpoint comes."""

    async def test(bench: PartitionBench) -> None:
        for n in range(40):
            await bench.plain(bytes([n]) * 2000)
        await bench.done(lambda done: bench.partition.trim(25, done))
        await bench.visible()
        with mock.patch.object(LogSegment, "discard"):
            await bench.partition.checkpoint()
            await bench.let_go()
        bases = [int(path.stem) for path in (tmp_path / "log").glob("*.log")]
        assert min(bases) == 0
        bench.restart()
        await asyncio.sleep(0)
        await bench.let_go()
        assert {int(path.stem) for path in (tmp_path / "log").glob("*.log")} == {
            base for base in bases if base >= bench.log.first_base
        }

    run(tmp_path, test)


def test_spans_stay_as_long_as_the_log(tmp_path: Path) -> None:
    """Over checkpoints and restarts, each with the name that readers are shown."""

    async def test(bench: PartitionBench) -> None:
        expected = [Span(0, 0, 5, T1), Span(1, 1, 5, T1)]
        for number, transaction in enumerate((T1, T2)):
            await bench.draft(transaction, 0, b"x")
            await bench.prepare(transaction)
            await bench.done(partial(bench.partition.apply, transaction, ApplyOrder(-1, 5, T1)))
            await bench.visible()
            assert list(bench.copier.spans.between(0, 9)) == expected[: number + 1]
            await bench.partition.checkpoint()
        await bench.plain(b"y")
        await bench.partition.checkpoint()
        bench.restart()
        assert list(bench.copier.spans.between(0, 9)) == expected
        assert list(bench.copier.spans.between(1, 9)) == expected[1:]

    run(tmp_path, test)


def test_a_checkpoint_of_a_partition_that_stops_comes_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a copy that is never carried out, in the one loop that checkpoints every partition."""

    def carry_out() -> None:
        raise DamagedLog("for a test")

    async def test(bench: PartitionBench) -> None:
        await bench.plain(b"first")
        monkeypatch.setattr(bench.copier, "_carry_out", carry_out)
        await bench.plain(b"second")
        checkpoint = asyncio.create_task(bench.partition.checkpoint())
        await bench.idle()
        assert not checkpoint.done()
        bench.partition.fail(bench.damages[0])
        await checkpoint
        assert bench.partition.checkpoint_position == 0

    run(tmp_path, test)


def test_journal_space_is_given_back(tmp_path: Path) -> None:
    """I7: all but what an open transaction needs."""

    async def test(bench: PartitionBench) -> None:
        for _ in range(8):
            await bench.plain(b"x" * 500_000)
        await bench.draft(T1, 0, b"kept")
        for _ in range(8):
            await bench.plain(b"x" * 500_000)
        await bench.partition.checkpoint()
        first = bench.journal.start_position
        assert first > 3_000_000
        bench.restart()
        await bench.prepare(T1)
        await bench.apply(T1)
        assert (await bench.visible())[-1] == b"kept"
        await bench.plain(b"x" * 900_000)
        await bench.partition.checkpoint()
        assert bench.journal.start_position > first

    run(tmp_path, test, log_segment_bytes=1 << 24)


@pytest.mark.parametrize("drafts", [1, 200])
def test_a_draft_that_has_rotted_is_not_copied(tmp_path: Path, drafts: int) -> None:
    """I9: its CRC is checked when it is read back for the copy, be that quick or slow."""

    async def test(bench: PartitionBench) -> None:
        for sequence in range(drafts):
            await bench.draft(T1, sequence, b"precious")
        await bench.prepare(T1)
        (path,) = (tmp_path / "journal").iterdir()
        content = bytearray(path.read_bytes())
        content[content.index(b"precious")] ^= 1
        path.write_bytes(content)
        await bench.apply(T1)
        while not bench.damages and not bench.log.end_offset:
            await asyncio.sleep(0)
        assert "CRC does not match" in str(bench.damages)
        assert (bench.log.end_offset, bench.log.plan_read(0)) == (0, None)

    run(tmp_path, test)
