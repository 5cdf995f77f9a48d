"""What a machine may lack: tests that need it are skipped there, but not where all must run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test; fail it where FAIRCOPY_REQUIRE_ALL=1 says that all tests must run."""
    if os.environ.get("FAIRCOPY_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} (and FAIRCOPY_REQUIRE_ALL=1)", pytrace=False)
    pytest.skip(what)
