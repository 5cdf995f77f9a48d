"""`pytest -p tests.mutants.plugin`: run tests on the mutant that the variable MUTANT names."""

from __future__ import annotations

import os

import pytest

from tests.mutants.mutants import MUTANTS


def pytest_configure(config: pytest.Config) -> None:
    mutant = MUTANTS[os.environ["MUTANT"]]()
    mutant.__enter__()
    config.add_cleanup(lambda: mutant.__exit__(None, None, None))
