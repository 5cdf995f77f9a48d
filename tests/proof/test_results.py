"""The page of results."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from tests.proof.results import Result, from_json, page_of, to_json
from tests.proof.stages import STAGES
from tests.quarantine.entries import Entry

TODAY = date(2026, 11, 27)
GOOD = Result("soak", True, "1,342 kills, 0 findings", 1_800.0, "2026-11-26", "0123456789")


def test_the_page_has_a_row_for_each_stage() -> None:
    page = page_of({"soak": GOOD}, [], TODAY)
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")][1:] == [
        f"| {stage.name}" for stage in STAGES
    ]
    assert "| good | 1,342 kills, 0 findings | 30 min | 2026-11-26 | 0123456789 |" in page
    assert page.count("not run yet") == len(STAGES) - 1


def test_the_page_shouts_what_was_found() -> None:
    assert "**something was found**" in page_of({"soak": replace(GOOD, is_good=False)}, [], TODAY)


def test_a_bar_in_what_was_said_is_no_border() -> None:
    page = page_of({"soak": replace(GOOD, said="2 | 3")}, [], TODAY)
    assert r"| good | 2 \| 3 | 30 min |" in page


def test_the_page_says_how_old_the_quarantine_is() -> None:
    page = page_of({}, [Entry("test_x.py", "2026-11-20", "a port is lost")], TODAY)
    assert "* `test_x.py`, since 2026-11-20 (7 days): a port is lost" in page
    assert "No test is in quarantine." in page_of({}, [], TODAY)


def test_results_survive_their_file() -> None:
    assert from_json(to_json({"soak": GOOD})) == {"soak": GOOD}
