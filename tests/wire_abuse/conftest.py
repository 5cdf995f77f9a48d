"""Connections by hand, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess
from tests.wire_abuse.instance import TOPIC


@pytest.fixture
def connections(broker: BrokerProcess) -> Iterator[list[BrokerConnection]]:
    """Three connections, in the order in which they were made."""
    made = [BrokerConnection(broker.address) for _ in range(3)]
    made[0].ask(METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
    yield made
    for connection in made:
        connection.__exit__()
