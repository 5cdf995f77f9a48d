"""How much memory a broker takes."""

from __future__ import annotations

import json

import psutil

from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess


def memory_bytes(broker: BrokerProcess) -> int:
    """The broker's resident memory; its publisher is another process."""
    size: int = psutil.Process(broker.pid).memory_info().rss
    return size


def memory_peak_bytes(broker: BrokerProcess) -> int:
    """The most that the broker's memory ever was."""
    with BrokerConnection(broker.address) as connection:
        about = json.loads(connection.ask(INSPECT, 0, {"subject": "broker"}).document)
    return int(about["memory_peak_bytes"])
