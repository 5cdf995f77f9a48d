"""Mutants that tests of the product find: those are run in the mutant's process."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from tests.forked import said_in_child
from tests.mutants.found_by import BY_TESTS
from tests.mutants.in_child import is_found

ROOT = Path(__file__).parents[2]
PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
WITHOUT = [word for name in ("benchmark", "cacheprovider", "xdist") for word in ("-p", f"no:{name}")]
# This process has imported the package of a plugin, faircopy: pytest warns of that, and warnings are errors.
ALREADY_IMPORTED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


def fail(tests: str) -> bool:
    """Whether any of these tests fails, run by another pytest in this process. Raises AssertionError if none
    was run.
    """
    os.environ.pop("PYTEST_ADDOPTS", None)
    find_no_smaller_examples()
    code = pytest.main(["-q", "-x", *WITHOUT, *ALREADY_IMPORTED, "--rootdir", str(ROOT), str(ROOT / tests)])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), f"pytest ends with {code}"
    return code == pytest.ExitCode.TESTS_FAILED


def find_no_smaller_examples() -> None:
    """Let hypothesis be content with the first example that fails: to find the smallest takes a minute."""
    hypothesis.settings.register_profile("first", hypothesis.settings.get_profile("faircopy"), phases=PHASES)
    hypothesis.settings.load_profile("first")


@pytest.mark.parametrize("name", BY_TESTS)
def test_a_test_finds(name: str) -> None:
    assert is_found(name, lambda: fail(BY_TESTS[name]))


@pytest.mark.parametrize("tests", sorted({tests.partition("::")[0] for tests in BY_TESTS.values()}))
def test_they_pass_without_a_mutant(tests: str) -> None:
    """In such a process; else they would find whatever is asked of them."""
    assert not said_in_child(lambda: fail(tests), "no mutant")
