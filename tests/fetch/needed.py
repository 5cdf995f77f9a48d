"""Tests that need what is not there: they are skipped, or fail where all tests must run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bench.systems.cache import Unavailable
from tests.requirements import missing

Found = TypeVar("Found")


def needed(find: Callable[[], Found]) -> Found:
    """What `find` returns. If that is unavailable, the running test is skipped, or fails."""
    try:
        return find()
    except Unavailable as reason:
        missing(str(reason))
