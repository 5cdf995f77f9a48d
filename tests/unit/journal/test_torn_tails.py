"""What a loss of power left of the last writes is cut, and never comes back."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, Entry, Kind, TransactionId
from faircopy.journal.entry_format import encode_header
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from tests.unit.journal.journal_bench import IDENTITY, Bench, flip, itself, only_segment, recover, run, tear


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
        journal.append(Kind.PLAIN, b"zero", fold=itself)
        await journal.durable()
        for n, size in enumerate(sizes[:durable_count]):
            journal.append(Kind.PLAIN, bytes([n]) * size, fold=itself)
        await journal.durable()
        durable_end = journal.watermarks.appended
        for n, size in enumerate(sizes[durable_count:]):
            journal.append(Kind.PLAIN, bytes([n]) * size, fold=itself)
        await journal.durable()
        tear(only_segment(path), 64 + durable_end, 64 + journal.watermarks.appended, data)
        again, found = bench.recovered()
        assert [len(payload) for _, payload in found[: durable_count + 1]] == [4, *sizes[:durable_count]]
        again.append(Kind.PLAIN, b"after the crash", fold=itself)
        await again.durable()
        assert bench.recovered()[1] == [*found, (found[-1][0] + 64 + len(found[-1][1]), b"after the crash")]

    run(path, test)


@pytest.mark.parametrize("lost_power", [False, True])
def test_without_a_loss_of_power_no_hole_is_a_torn_tail(tmp_path: Path, lost_power: bool) -> None:
    """If rot in an acked draft cut both it and the PREPARED after it, the commit would be aborted."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        draft = journal.append(Kind.DRAFT, b"x" * 100, transaction=TransactionId(1, 0, 1), fold=itself)
        journal.append(Kind.PREPARED, b"y" * 12, transaction=TransactionId(1, 0, 1), fold=itself)
        await journal.durable()
        flip(only_segment(tmp_path), 64 + draft.position + 80)
        found = Journal(
            bench.path, IDENTITY, bench.disk, bench.loop, journal._options._replace(lost_power=lost_power)
        )
        if lost_power:
            recover(found, 0, lambda recovered: None)
            assert found.watermarks.appended == 0
        else:
            with pytest.raises(DamagedJournal, match="the machine has not lost power since"):
                recover(found, 0, lambda recovered: None)

    run(tmp_path, test)


def test_no_client_can_have_a_torn_tail_taken_for_damage(tmp_path: Path) -> None:
    """Its messages hold what would be an entry there, and say that all was durable: but the salt is not
    known.
    """

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        torn = journal.append(Kind.PLAIN, b"a" * 100, fold=itself)
        at = torn.end + HEADER_BYTES
        forged = Entry(Kind.PLAIN, at, HEADER_BYTES, 0, 1, -1, NO_TRANSACTION, at)
        seed = journal.segments[0].seed
        headers = [encode_header(forged, b"", guess) for guess in (0, seed)]
        assert len(headers[0]) == HEADER_BYTES
        for header, is_known in zip(headers, (False, True), strict=True):
            journal.append(Kind.PLAIN, header, fold=itself)
            await journal.durable()
            flip(only_segment(tmp_path), HEADER_BYTES + torn.position)
            with pytest.raises(DamagedJournal) if is_known else contextlib.nullcontext():
                journal, found = bench.recovered()
                assert found == []
                torn = journal.append(Kind.PLAIN, b"a" * 100, fold=itself)

    run(tmp_path, test)


def test_old_entries_after_a_cut_never_come_back(tmp_path: Path) -> None:
    """A torn write leaves a sound entry after a bad one, which a new one of equal length must not revive."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"durable", fold=itself)
        await journal.durable()
        bad = journal.append(Kind.PLAIN, b"a" * 100, fold=itself)
        journal.append(Kind.PLAIN, b"zombie", fold=itself)
        await journal.durable()
        flip(only_segment(tmp_path), 64 + bad.position + 70)
        again, found = bench.recovered()
        assert [payload for _, payload in found] == [b"durable"]
        again.append(Kind.PLAIN, b"b" * 100, fold=itself)
        await again.durable()
        assert [payload for _, payload in bench.recovered()[1]] == [b"durable", b"b" * 100]

    run(tmp_path, test)
