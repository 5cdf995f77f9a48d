"""What no crash explains is damage: it is told where it is, and never cut."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.errors import DoesNotFold, InvariantViolation
from faircopy.journal.entry import Kind
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import Recovered
from faircopy.storage.failures import StorageFailure
from tests.unit.journal.journal_bench import SEGMENT_BYTES, Bench, flip, itself, only_segment, recover, run


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_below_what_was_durable_is_never_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal")

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        for n in range(5):
            journal.append(Kind.PLAIN, bytes([n]) * 700, fold=itself)
            await journal.durable()
        last = journal.append(Kind.PLAIN, b"tells that all before it was durable", fold=itself)
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


def test_damage_below_a_checkpoint_is_never_cut(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        entry = journal.append(Kind.PLAIN, b"x" * 100, fold=itself)
        await journal.durable()
        only_segment(tmp_path).write_bytes(only_segment(tmp_path).read_bytes()[: 64 + 50])
        with pytest.raises(DamagedJournal):
            bench.recovered(start=entry.end)

    run(tmp_path, test)


def test_an_entry_that_cannot_be_folded_is_damage(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"good", fold=itself)
        odd = journal.append(Kind.PLAIN, b"odd", fold=itself)
        await journal.durable()

        def fold(recovered: Recovered, error: Exception) -> None:
            if bytes(recovered.payload) == b"odd":
                raise error

        for odd_error in (KeyError("id"), InvariantViolation("I4"), RecursionError()):
            with pytest.raises(DamagedJournal, match="can't follow those before it") as caught:
                recover(bench.journal(), 0, partial(fold, error=odd_error))
            assert (caught.value.path, caught.value.byte) == (only_segment(tmp_path), 64 + odd.position)
        for error in (StorageFailure("no"), OSError("no")):
            with pytest.raises(type(error)):
                recover(bench.journal(), 0, partial(fold, error=error))

    run(tmp_path, test)


def test_a_segment_of_another_journal_is_refused(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"x", fold=itself)
        await journal.durable()
        options = JournalOptions(Durability.FSYNC, SEGMENT_BYTES, bench.new_salt, bench.failures.append)
        other = Journal(tmp_path, bytes(20), bench.disk, bench.loop, options)
        with pytest.raises(DamagedJournal, match="belongs to another journal"):
            other.open(0)

    run(tmp_path, test)


def test_an_entry_that_does_not_fold_is_passed_over_if_somebody_says_so(tmp_path: Path) -> None:
    """Only what its fold has refused without a change: after any other error, the state may be anything."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"good", fold=itself)
        odd = journal.append(Kind.PLAIN, b"odd", fold=itself)
        journal.append(Kind.PLAIN, b"better", fold=itself)
        await journal.durable()
        found: list[bytes] = []

        def fold(recovered: Recovered, error: Exception) -> None:
            if bytes(recovered.payload) == b"odd":
                raise error
            found.append(bytes(recovered.payload))

        for error in (KeyError("id"), InvariantViolation("I3")):
            with pytest.raises(DamagedJournal):
                recover(bench.journal(passed_over=[]), 0, partial(fold, error=error))
        found.clear()
        passed_over: list[DamagedJournal] = []
        recover(bench.journal(passed_over=passed_over), 0, partial(fold, error=DoesNotFold("I4")))
        assert found == [b"good", b"better"]
        assert [each.byte for each in passed_over] == [64 + odd.position]

    run(tmp_path, test)
