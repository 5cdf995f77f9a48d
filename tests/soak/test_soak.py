"""A short soak is good and meets every fault; a soak of a broker with a broken rule is not good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.child_process import start_child
from tests.finding import a_finding_if_not

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 280
SOAKS_MAX = 2

pytestmark = pytest.mark.timeout(SOAKS_MAX * SECONDS_MAX + 20)


def soak(directory: Path, *arguments: str) -> dict[str, Any]:
    """The output of `python -m tests.soak`. Its seed is printed; its files are in `directory`."""
    command = [sys.executable, "-m", "tests.soak", "--json", "--keep", str(directory), *arguments]
    with start_child(command, stdout=subprocess.PIPE, cwd=ROOT) as done:
        try:
            said, _ = done.communicate(timeout=SECONDS_MAX)
        finally:
            done.kill()
    outcome: dict[str, Any] = json.loads(said)
    is_good = outcome["verdict"] == "valid" and not outcome["failures"]
    assert done.returncode == (0 if is_good else 1)
    return outcome


def test_a_short_soak_is_good_and_meets_every_fault(tmp_path: Path) -> None:
    outcome = soak(tmp_path / "soak", "--minutes", "0")
    with a_finding_if_not():
        assert (outcome["verdict"], outcome["findings"], outcome["failures"]) == ("valid", [], [])
    assert [name for name, count in outcome["faults"].items() if not count] == []
    assert outcome["transactions"]["ok"] > 10
    assert outcome["messages"] > 10


def test_a_soak_finds_a_broker_that_takes_what_is_repeated_for_new(tmp_path: Path) -> None:
    """A batch that comes twice shows only if its transaction is committed: none of the first eight may be."""
    for number in range(SOAKS_MAX):
        directory = tmp_path / str(number)
        outcome = soak(directory, "--minutes", "0", "--mutant", "believe_every_duplicate_is_new")
        if outcome["verdict"] == "invalid":
            break
    assert any(finding.startswith("duplicate: ") for finding in outcome["findings"])
