"""A broker, and what its partitions show, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess
from tests.joint.asking import make_topic, visible

PARTITIONS = 3


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with the topic `joint`, which a test may kill."""
    with BrokerProcess(tmp_path_factory.mktemp("client"), f"topic.partitions={PARTITIONS}") as broker:
        with BrokerConnection(broker.address) as connection:
            make_topic(connection)
        yield broker


@pytest.fixture
def seen(own_broker: BrokerProcess) -> Callable[[], list[bytes]]:
    """All values that are visible, by partition."""

    def values() -> list[bytes]:
        with BrokerConnection(own_broker.address) as connection:
            return [value for number in range(PARTITIONS) for value in visible(connection, number)]

    return values
