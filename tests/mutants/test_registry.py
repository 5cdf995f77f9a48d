"""All mutants are known, replace what is there, and have something that finds them."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL, raise_signal

import pytest

from tests import forked
from tests.forked import TrialDied
from tests.mutants.found_by import (
    BY_CRASH_STATES,
    BY_SCENARIOS,
    BY_SEEDS,
    BY_SEEDS_WITH_AN_ARBITER,
    BY_TESTS,
)
from tests.mutants.in_child import is_found
from tests.mutants.mutants import MUTANTS

NAME = next(iter(MUTANTS))


def test_all_are_collected() -> None:
    assert len(MUTANTS) >= 20
    files = Path(__file__).parent.glob("*.py")
    assert len(MUTANTS) == sum(file.read_text().count("\n@mutant\n") for file in files)


def test_something_finds_each() -> None:
    found = {*BY_SCENARIOS, *BY_TESTS, *BY_CRASH_STATES, *BY_SEEDS, *BY_SEEDS_WITH_AN_ARBITER}
    assert found == {*MUTANTS}


def test_the_page_says_how_many() -> None:
    page = (Path(__file__).parents[2] / "docs/RELIABILITY.md").read_text()
    assert f"of the {len(MUTANTS)} mutants, these scripts find {len(BY_SCENARIOS)} in" in page


@pytest.mark.parametrize("name", MUTANTS)
def test_each_replaces_what_is_there(name: str) -> None:
    assert is_found(name, lambda: True)


def test_what_finds_nothing_says_so() -> None:
    assert not is_found(NAME, lambda: False)


def fail() -> bool:
    raise ValueError("the trial is wrong")


def die() -> bool:
    raise_signal(SIGKILL)
    return True


def test_a_trial_that_fails_finds_nothing() -> None:
    with pytest.raises(TrialDied, match="the trial is wrong"):
        is_found(NAME, fail)


def test_a_mutant_that_ends_its_process_is_not_found() -> None:
    with pytest.raises(TrialDied, match="its process ended"):
        is_found(NAME, die)


def test_a_mutant_that_is_caught_in_a_loop_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "CPU_SECONDS_MAX", 1)

    def loop() -> bool:
        while True:
            pass

    with pytest.raises(TrialDied, match="its process ended"):
        is_found(NAME, loop)
