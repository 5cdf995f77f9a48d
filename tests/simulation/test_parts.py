"""Whoever shares the parts of the seeds runs each once, and hears of all that was wrong or never met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from tests.checker.check import Checked, Verdict
from tests.simulation import parts
from tests.simulation.coverage import Coverage
from tests.simulation.outcome import Outcome
from tests.simulation.parts import missed_by, part_of

BAD = 13
THINGS = [f"thing {number}" for number in range(100)]
Runs = Counter[int]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """How often each seed was run. A seed meets the thing of its number; all know of all things."""
    counted: Runs = Counter()

    def simulate(seed: int) -> Outcome:
        counted[seed] += 1
        coverage = Coverage()
        coverage.announce(*THINGS)
        coverage.hit(THINGS[seed])
        failures = ["a promise was broken"] if seed == BAD else []
        return Outcome(seed, Checked(Verdict.VALID, []), failures, [], coverage, 1.0)

    monkeypatch.setattr(parts, "simulate", simulate)
    return counted


def in_threads(*functions: Callable[[], object]) -> None:
    threads = [Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_failing_seed_says_how_to_repeat_it(tmp_path: Path, runs: Runs) -> None:
    part = part_of(tmp_path, 0, [BAD - 1, BAD])
    said, what, again = part.wrong
    assert (said, what) == (f"seed {BAD}: valid", "  a promise was broken")
    assert again == f"  again: make simulate SEED={BAD}"


def test_a_failing_seed_with_an_arbiter_says_that_it_has_one() -> None:
    outcome = Outcome(BAD, Checked(Verdict.VALID, []), ["an answer left"], [], Coverage(), 1.0, True)
    assert parts.wrong_with(outcome)[-1] == f"  again: make simulate SEED={BAD} ARBITER=1"


def test_what_all_together_never_met_is_missed(tmp_path: Path, runs: Runs) -> None:
    all_of_them = [part_of(tmp_path, number, [number]) for number in range(99)]
    assert missed_by(all_of_them) == [THINGS[99]]
    assert missed_by([*all_of_them, part_of(tmp_path, 99, [99])]) == []


def test_no_part_is_run_twice(tmp_path: Path, runs: Runs) -> None:
    """In whatever order, and at the same time."""

    def run_all(numbers: range) -> None:
        for number in numbers:
            assert part_of(tmp_path, number, [number]).coverage[THINGS[number]] == 1

    in_threads(lambda: run_all(range(40)), lambda: run_all(range(39, -1, -1)))
    assert runs == Counter(range(40))


def test_who_was_killed_has_left_nothing(tmp_path: Path, runs: Runs) -> None:
    (tmp_path / "seeds-0.lock").touch()
    assert part_of(tmp_path, 0, [5]).coverage[THINGS[5]] == 1
