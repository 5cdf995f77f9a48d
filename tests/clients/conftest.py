"""Three foreign clients, and a real broker for each module."""

from __future__ import annotations

import gc
import uuid
import warnings
from collections.abc import Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.clients import aiokafka_adapter, confluent_adapter, kafka_python_adapter
from tests.clients.adapter import Client
from tests.clients.talk import Talk

WARNINGS_OF_OTHERS = (
    # kafka-python reads a message's schema on first use, with a function that Python 3.11 deprecates.
    "ignore:(read|open)_text is deprecated:DeprecationWarning",
    # kafka-python leaves sockets to the garbage collector when a connection breaks or is refused.
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
)
CLIENTS: tuple[Client, ...] = (confluent_adapter, kafka_python_adapter, aiokafka_adapter)


def pytest_configure(config: pytest.Config) -> None:
    for warning in WARNINGS_OF_OTHERS:
        config.addinivalue_line("filterwarnings", warning)


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect such sockets while their warnings are still ignored: our filters are gone when pytest ends."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker for the tests of one module, with the module's SETTINGS; each test makes topics of its own."""
    settings = (
        "group.min.session.timeout.ms=500",
        "plain.enabled=false",
        *getattr(request.module, "SETTINGS", ()),
    )
    with BrokerProcess(tmp_path_factory.mktemp("broker"), *settings) as process:
        yield process
        assert "Traceback" not in process.log


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
