"""A journal on real files: what was appended is there after a restart, until it is reclaimed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import Entry, Kind
from faircopy.journal.options import Durability
from tests.unit.journal.journal_bench import SEGMENT_BYTES, Bench, itself, recover, run


@pytest.mark.parametrize("durability", Durability)
def test_what_is_durable_is_there_after_a_restart(tmp_path: Path, durability: Durability) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        payloads = [bytes([n]) * (n * 1000) for n in range(50)]
        positions = [journal.append(Kind.PLAIN, payload, fold=itself).position for payload in payloads]
        await journal.durable()
        _, found = bench.recovered()
        assert found == list(zip(positions, payloads, strict=True))
        assert not bench.failures

    run(tmp_path, test, durability)


def test_entries_bear_the_epoch_of_the_leader_that_wrote_them(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        journal.leader_epoch = 7
        journal.append(Kind.PLAIN, b"second", fold=itself)
        await journal.durable()
        epochs: list[int] = []
        recover(
            bench.journal(leader_epoch=8), 0, lambda recovered: epochs.append(recovered.entry.leader_epoch)
        )
        assert epochs == [0, 7]

    run(tmp_path, test)


def test_entries_go_on_over_segments(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for n in range(40):
            journal.append(Kind.PLAIN, bytes([n]) * 100_000, fold=itself)
        await journal.durable()
        assert len(list(tmp_path.glob("*.journal"))) > 3
        again, found = bench.recovered()
        assert [payload[0] for _, payload in found] == list(range(40))
        again.append(Kind.PLAIN, b"more", fold=itself)
        await again.durable()
        assert bench.recovered()[1][-1][1] == b"more"

    run(tmp_path, test)


def test_an_entry_larger_than_a_segment_has_one_of_its_own(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for size in (10, 3 * SEGMENT_BYTES, 10):
            journal.append(Kind.PLAIN, b"x" * size, fold=itself)
        await journal.durable()
        assert [len(payload) for _, payload in bench.recovered()[1]] == [10, 3 * SEGMENT_BYTES, 10]

    run(tmp_path, test)


def test_reclaim_keeps_what_is_needed(tmp_path: Path) -> None:
    """I7."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        entries = [journal.append(Kind.PLAIN, b"x" * 500_000, fold=itself) for _ in range(8)]
        await journal.durable()
        for segment in journal.reclaim(entries[5].position):
            segment.path.unlink()
        assert journal.start_position <= entries[5].position
        assert journal.start_position > entries[2].position
        _, found = bench.recovered(start=entries[5].position)
        assert [position for position, _ in found] == [entry.position for entry in entries[5:]]

    run(tmp_path, test)


def test_what_does_not_fold_is_not_appended(tmp_path: Path) -> None:
    """If it were, no later start could fold the journal."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        end = journal.watermarks.appended

        def fold(_entry: Entry) -> None:
            raise InvariantViolation("I4")

        with pytest.raises(InvariantViolation):
            journal.append(Kind.PLAIN, b"never", fold=fold)
        assert [str(error) for error in bench.bugs] == ["I4"]
        assert journal.watermarks.appended == end
        journal.append(Kind.PLAIN, b"second", fold=itself)
        await journal.durable()
        assert [payload for _, payload in bench.recovered()[1]] == [b"first", b"second"]

    run(tmp_path, test)
