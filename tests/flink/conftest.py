"""The compiled job, and a copying of it for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fetch.needed import needed
from tests.flink.installed import FLINK, JAVA
from tests.java.compiled import Installed, compiled

LIMIT_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_SECONDS))


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Flink, and the program compiled for it."""
    return needed(lambda: compiled(FLINK, JAVA, tmp_path_factory.mktemp("classes")))


@pytest.fixture(params=["INCREMENTING", "POOLING"])
def naming(request: pytest.FixtureRequest) -> str:
    """How Flink names its transactions: by new ids for ever, or by those that are free."""
    return str(request.param)
