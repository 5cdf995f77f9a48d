"""`pytest -p tests.mutants.plugin`: run tests on the mutant that the variable MUTANT names."""

from __future__ import annotations

import contextlib
import os

import pytest

from tests.mutants.mutants import MUTANTS


def pytest_configure(config: pytest.Config) -> None:
    mutant = MUTANTS[os.environ["MUTANT"]]()
    until_the_end = contextlib.ExitStack()
    until_the_end.enter_context(mutant)
    config.add_cleanup(until_the_end.close)
