"""Bytes in flight are bounded over all connections, and everybody gets on in the end."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil
from confluent_kafka import Producer

from tests.broker_process import BrokerProcess

MIB = 1 << 20


def test_many_large_requests_at_once_wait_for_room(tmp_path: Path) -> None:
    settings = ("requests.in.flight.max.bytes=1048576", "topic.max.message.bytes=10485760", "durability=os")
    with BrokerProcess(tmp_path, *settings) as broker:
        failed: list[object] = []

        def send(number: int) -> None:
            producer = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 10 * MIB, "linger.ms": 0})
            for _ in range(5):
                producer.produce(
                    "large", bytes(4 * MIB), partition=0, on_delivery=lambda error, _: failed.append(error)
                )
            failed.append(producer.flush(60) or None)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == [None] * 36
        assert psutil.Process(broker.pid).memory_info().rss < 200 * MIB
