"""Tests that need what is not there: they are skipped, or fail where all tests must run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn, TypeVar

import pytest

from bench.systems.cache import Unavailable

Found = TypeVar("Found")


def needed(find: Callable[[], Found]) -> Found:
    """What `find` returns. If that is unavailable, the running test is skipped, or fails."""
    try:
        return find()
    except Unavailable as reason:
        missing(str(reason))


def missing(reason: str) -> NoReturn:
    """Skip the running test, or let it fail where all tests must run."""
    if os.environ.get("FAIRCOPY_REQUIRE_ALL") == "1":
        pytest.fail(f"{reason} (and FAIRCOPY_REQUIRE_ALL=1)", pytrace=False)
    pytest.skip(reason)
