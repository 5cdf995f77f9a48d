"""Each target for some seconds under atheris, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.finding import a_finding_if_not
from tests.fuzz.broken import UNCHECKED
from tests.fuzz.campaign import MEMORY_MIB_MAX, NO_ATHERIS, fixed_addresses, fuzz, has_atheris
from tests.fuzz.targets import TARGETS
from tests.requirements import missing
from tests.seeds import seed_for

EXECUTIONS = 10_000
SECONDS_MAX = 60
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
    """By number, not by time: a slow machine tries fewer of the same inputs, and a fast one no others."""
    seed = seed_for(f"atheris, {target}")
    new, found = tmp_path / "new", tmp_path / "found"
    outcome = fuzz(TARGETS[target], SECONDS_MAX, new, found, seed=seed, executions_max=EXECUTIONS)
    with a_finding_if_not():
        assert not outcome.failures, outcome.log
    assert outcome.is_good, outcome.log
    assert 0 < outcome.peak_mib < MEMORY_MIB_MAX
    assert outcome.executions >= EXECUTIONS_LEAST, outcome.log


def test_a_seed_draws_the_same_inputs(tmp_path: Path) -> None:
    if not fixed_addresses():
        missing("setarch may not fix the addresses of a process here")
    kept = []
    for name in ("once", "again", "and again"):
        new = tmp_path / name
        outcome = fuzz(TARGETS["columns"], SECONDS_MAX, new, tmp_path / "found", seed=5, executions_max=1_500)
        assert outcome.is_good, outcome.log
        kept.append({file.name: file.read_bytes() for file in new.iterdir()})
    assert kept == 3 * kept[:1]
    assert len(kept[0]) > 10


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
