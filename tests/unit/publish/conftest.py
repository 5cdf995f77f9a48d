"""A new table, for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.unit.publish.table_bench import Place


@pytest.fixture
def place() -> Place:
    return Place()
