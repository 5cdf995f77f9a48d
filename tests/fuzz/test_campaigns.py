"""Each target for some seconds under atheris, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.finding import a_finding_if_not
from tests.fuzz.broken import UNCHECKED
from tests.fuzz.campaign import MEMORY_MIB_MAX, NO_ATHERIS, fuzz, has_atheris
from tests.fuzz.targets import TARGETS
from tests.requirements import missing
from tests.seeds import seed_for

SECONDS = 3
SECONDS_ON_A_SLOW_MACHINE = 60
BROKEN_SECONDS = 300  # it ends with what it finds, usually in less than 20
EXECUTIONS_LEAST = 50


@pytest.fixture(autouse=True)
def _atheris_is_there() -> None:
    """Skip where there is no atheris, unless nothing may be skipped."""
    if not has_atheris():
        missing(NO_ATHERIS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGETS)
def test_atheris_finds_nothing(target: str, tmp_path: Path) -> None:
    seed = seed_for(f"atheris, {target}")
    for seconds in (SECONDS, SECONDS_ON_A_SLOW_MACHINE):
        outcome = fuzz(TARGETS[target], seconds, tmp_path / f"{seconds}", tmp_path / "found", seed=seed)
        with a_finding_if_not():
            assert not outcome.failures, outcome.log
        assert outcome.is_good, outcome.log
        assert 0 < outcome.peak_mib < MEMORY_MIB_MAX
        if outcome.executions >= EXECUTIONS_LEAST:
            return
    raise AssertionError(f"only {outcome.executions} executions in {outcome.seconds:.0f} s: {outcome.log}")


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("target", UNCHECKED)
def test_a_check_that_is_left_out_is_found(target: str, tmp_path: Path) -> None:
    outcome = fuzz(
        TARGETS[target],
        BROKEN_SECONDS,
        tmp_path / "new",
        tmp_path / "found",
        worker="tests.fuzz.broken",
        seed=seed_for(f"atheris, {target}, broken"),
    )
    assert not outcome.is_good, outcome.log
    assert outcome.failures, outcome.log
