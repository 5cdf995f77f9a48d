"""What is in quarantine says since when, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quarantine.entries import Entry, entries


def test_what_is_in_quarantine_tells_its_date_and_cause() -> None:
    list(entries())


def test_a_file_tells_its_date_and_cause(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text('"""X."""\n\nSINCE = "2026-11-27"\nCAUSE = "a port is lost"\n')
    assert list(entries(tmp_path)) == [Entry("test_x.py", "2026-11-27", "a port is lost")]


@pytest.mark.parametrize("told", ['SINCE = "2026-11-27"', 'CAUSE = "x"', 'SINCE = "soon"\nCAUSE = "x"', ""])
def test_a_file_that_does_not_is_refused(tmp_path: Path, told: str) -> None:
    (tmp_path / "test_x.py").write_text(told)
    with pytest.raises(ValueError, match=r"test_x|soon"):
        list(entries(tmp_path))
