"""Three foreign clients, and a real broker for each module."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients import aiokafka_adapter, confluent_adapter, kafka_python_adapter
from tests.clients.adapter import Client
from tests.clients.litter import collected, overlook
from tests.clients.talk import Talk

CLIENTS: tuple[Client, ...] = (confluent_adapter, kafka_python_adapter, aiokafka_adapter)


__all__ = ["collected"]  # a fixture that each test here uses


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            overlook(item)


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker for the tests of one module, with the module's SETTINGS; each test makes topics of its own."""
    settings = getattr(request.module, "SETTINGS", ())
    with BrokerProcess(tmp_path_factory.mktemp("broker"), "plain.enabled=false", *settings) as process:
        yield process
        process.ensure_no_traceback()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn."""
    found: Client = request.param
    return found


@pytest.fixture
def topic() -> str:
    """A name that nobody has used."""
    return f"topic-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def talk(broker: BrokerProcess, client: Client) -> Iterator[Talk]:
    """Producers and consumers of one client, closed when the test is over."""
    with Talk(client, broker.address) as talk:
        yield talk
