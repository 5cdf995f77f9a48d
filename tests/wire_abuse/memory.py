"""How much memory a broker takes."""

from __future__ import annotations

import psutil

from tests.broker_process import BrokerProcess


def memory_bytes(broker: BrokerProcess) -> int:
    """The broker's resident memory; its publisher is another process."""
    size: int = psutil.Process(broker.pid).memory_info().rss
    return size
