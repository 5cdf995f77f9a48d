"""What `verify` makes of a journal whose first segments were deleted, of which a crash brought some back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faircopy.journal.entry import Kind
from faircopy.verify.findings import Finding
from faircopy.verify.journal_files import JournalFiles, check_below, open_journal
from tests.unit.journal.journal_bench import IDENTITY, Bench, itself

SEGMENTS = 5
PAYLOAD = bytes(700 << 10)  # one a segment


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    async def main() -> None:
        journal, _ = Bench(tmp_path).recovered()
        for _ in range(SEGMENTS):
            journal.append(Kind.PLAIN, PAYLOAD, fold=itself)
            await journal.durable()

    asyncio.run(main())
    found = sorted(tmp_path.iterdir())
    assert len(found) == SEGMENTS
    return found


def base_of(path: Path) -> int:
    return int(path.stem)


def checked(paths: list[Path], needed: Path) -> tuple[JournalFiles, list[Finding]]:
    files, findings = open_journal(paths[0].parent, IDENTITY, lambda _bytes: None)
    assert not findings
    return files, list(check_below(files, base_of(needed), base_of(paths[-1])))


def test_a_gap_below_what_is_needed_is_none(paths: list[Path]) -> None:
    paths[1].unlink()
    files, findings = checked(paths, needed=paths[2])
    assert findings == []
    assert files.start_position == base_of(paths[2])


def test_a_gap_in_what_is_needed_is_damage(paths: list[Path]) -> None:
    paths[2].unlink()
    assert [finding.path for finding in checked(paths, needed=paths[1])[1]] == [paths[1]]
    paths[0].unlink()
    assert [finding.path for finding in checked(paths, needed=paths[2])[1]] == [paths[1]]


def test_what_came_back_is_checked_as_well(paths: list[Path]) -> None:
    paths[1].unlink()
    data = bytearray(paths[0].read_bytes())
    data[100_000] ^= 1
    paths[0].write_bytes(data)
    assert [finding.path for finding in checked(paths, needed=paths[2])[1]] == [paths[0]]
