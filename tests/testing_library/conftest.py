"""A broker for the tests of one module, by the library itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.testing import Broker
from tests.clients.litter import collected, overlook

__all__ = ["collected"]  # a fixture that each test here uses


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            overlook(item)


@pytest.fixture(scope="module")
def testing_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def faulty(testing_broker: Broker) -> Iterator[Broker]:
    """That broker, of whose faults nothing is left in the end."""
    yield testing_broker
    testing_broker.clear_faults()
