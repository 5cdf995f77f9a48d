"""Many seeds of the simulation: each one passes, and together they meet everything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.seeds import seeds_for
from tests.simulation.__main__ import COVERING_SEEDS
from tests.simulation.parts import missed_by, part_of

PART_SEEDS = 25
PART_SECONDS_MAX = 900  # it takes one minute of a processor
SEEDS = seeds_for("simulation", COVERING_SEEDS)
PARTS = [SEEDS[first : first + PART_SEEDS] for first in range(0, COVERING_SEEDS, PART_SEEDS)]


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that is the same in all processes of this run, and in no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.mark.timeout(PART_SECONDS_MAX)
@pytest.mark.parametrize("number", range(len(PARTS)))
def test_seeds_are_good(number: int, shared: Path) -> None:
    part = part_of(shared, number, PARTS[number])
    assert not part.wrong, "\n".join(part.wrong)


@pytest.mark.timeout(len(PARTS) * PART_SECONDS_MAX)
def test_seeds_meet_everything(shared: Path) -> None:
    """Alone it runs all of them itself. Beside others, who begin with the first part, it begins with the
    last: so it waits for one of theirs at most.
    """
    missed = missed_by(part_of(shared, number, PARTS[number]) for number in reversed(range(len(PARTS))))
    assert not missed, f"never met by {COVERING_SEEDS} seeds: {', '.join(missed)}"
