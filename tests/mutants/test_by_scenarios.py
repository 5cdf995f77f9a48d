"""Mutants of which a script says something else (tests/scenarios)."""

from __future__ import annotations

import pytest

from faircopy.errors import FaircopyError, InvariantViolation
from tests.mutants.found_by import BY_SCENARIOS
from tests.mutants.in_child import is_found
from tests.scenarios.kinds import HERE, play_file


def says_something_else(script: str) -> bool:
    """Whether a script's test would fail: something else comes of it, or the product breaks off."""
    path = HERE / f"{script}.txt"
    written = path.read_text()
    try:
        return play_file(path) != written
    except (FaircopyError, InvariantViolation):
        return True


@pytest.mark.parametrize("name", BY_SCENARIOS)
def test_a_script_finds(name: str) -> None:
    assert is_found(name, lambda: says_something_else(BY_SCENARIOS[name]))


@pytest.mark.parametrize("script", sorted({*BY_SCENARIOS.values()}))
def test_it_says_the_same_without_a_mutant(script: str) -> None:
    assert not says_something_else(script)
