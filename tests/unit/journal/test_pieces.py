"""Pieces: the bytes of a journal's files, as a follower gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import Kind
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.pieces import Piece
from faircopy.journal.segment import HEADER_BYTES
from faircopy.storage.file import File, NotCached
from tests.unit.journal.journal_bench import Bench, itself, run

PAYLOAD = bytes(400_000)  # two of them fill a segment
ENTRIES = 5
MUCH = 1 << 30

both_ways = pytest.mark.parametrize("is_cached", [False, True], ids=["read", "read from the cache"])


async def synced(bench: Bench, entries: int = ENTRIES) -> Journal:
    """A journal of several segments, of which all is synced."""
    journal, _ = bench.recovered()
    for _ in range(entries):
        journal.append(Kind.PLAIN, PAYLOAD, fold=itself)
        await journal.durable()
    assert len(journal.segments) == -(-entries // 2)
    return journal


def pieces(journal: Journal, bytes_max: int, *, is_cached: bool) -> list[Piece]:
    """All of a journal, piece by piece."""
    found: list[Piece] = []
    position = 0
    while position < journal.watermarks.synced:
        found.append(journal.piece(position, bytes_max, is_cached=is_cached))
        position += len(found[-1].content)
    return found


@both_ways
@pytest.mark.parametrize("bytes_max", [MUCH, 130_001])
def test_pieces_are_the_bytes_of_the_files(tmp_path: Path, bytes_max: int, is_cached: bool) -> None:
    async def test(bench: Bench) -> None:
        journal = await synced(bench)
        found = pieces(journal, bytes_max, is_cached=is_cached)
        for number, segment in enumerate(journal.segments):
            mine = [each for each in found if each.seed == segment.seed]
            following = [each.base for each in journal.segments[number + 1 :]]
            end = min(following, default=journal.watermarks.synced)
            content = b"".join(each.content for each in mine)
            assert content == segment.path.read_bytes()[HEADER_BYTES : segment.at(end)]
            assert mine[0].position == segment.base
            assert bytes_max < MUCH or len(mine) == 1
        assert all(len(each.content) <= bytes_max for each in found)

    run(tmp_path, test)


@both_ways
def test_no_piece_has_what_is_not_synced(tmp_path: Path, is_cached: bool) -> None:
    async def test(bench: Bench) -> None:
        journal = await synced(bench, 1)
        end = journal.watermarks.synced
        for _ in range(2):  # the second one is in the next segment
            journal.append(Kind.DRAFT, PAYLOAD, fold=itself)
        await journal.kept()
        assert journal.watermarks.written > end == journal.watermarks.synced
        assert len(journal.piece(0, MUCH, is_cached=is_cached).content) == end
        with pytest.raises(InvariantViolation):
            journal.piece(end, MUCH, is_cached=is_cached)

    run(tmp_path, test)


@both_ways
def test_what_was_reclaimed_is_not_there(tmp_path: Path, is_cached: bool) -> None:
    """Also if that happens while a piece of it is about to be read."""

    async def test(bench: Bench) -> None:
        journal = await synced(bench)
        second = journal.segments[1].base
        reclaimed = journal.reclaim(second)
        with pytest.raises(DamagedJournal, match=f"no longer holds position {second - 1}"):
            journal.piece(second - 1, MUCH, is_cached=is_cached)
        assert journal.piece(second, 10, is_cached=is_cached).position == second
        reclaimed += journal.segments[:1]
        for segment in reclaimed:
            segment.discard()
        with pytest.raises(DamagedJournal, match=f"no longer holds position {second}"):
            journal.piece(second, 10, is_cached=is_cached)

    run(tmp_path, test)


@both_ways
def test_synced_bytes_that_are_missing_are_damage(tmp_path: Path, is_cached: bool) -> None:
    async def test(bench: Bench) -> None:
        journal = await synced(bench, 1)
        path, end = journal.segments[0].path, journal.watermarks.synced
        path.write_bytes(path.read_bytes()[:1_000])
        with pytest.raises(
            DamagedJournal, match=f"ends at byte 1000, before position {end}, up to which"
        ) as caught:
            journal.piece(0, MUCH, is_cached=is_cached)
        assert (caught.value.path, caught.value.byte) == (path, 1_000)

    run(tmp_path, test)


def test_who_wants_to_wait_for_no_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_cached(self: File, size: int, position: int) -> bytes:
        raise NotCached

    async def test(bench: Bench) -> None:
        journal = await synced(bench, 1)
        monkeypatch.setattr(File, "read_cached", not_cached)
        with pytest.raises(NotCached):
            journal.piece(0, 10, is_cached=True)
        piece = await bench.disk.run(lambda: journal.piece(0, 10, is_cached=False))
        assert len(piece.content) == 10

    run(tmp_path, test)
