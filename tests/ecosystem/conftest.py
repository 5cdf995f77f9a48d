"""These tests run foreign programs, which take their time."""

from __future__ import annotations

from pathlib import Path

import pytest

LIMIT_SECONDS = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_SECONDS))
