"""Writers of large requests that send much at once, and then hardly anything, and come back when they are
closed: they hold all the memory for requests, and others still get theirs through.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from confluent_kafka import Producer

from tests.broker_process import BrokerProcess

MIB = 1 << 20
SLOW = 6
BURST_BYTES = 2 * MIB
CLAIMED_BYTES = 60 * MIB
TRICKLE_SECONDS = 0.2
LARGE_BYTES = 6 * MIB
OTHERS = 4


class SlowWriter(threading.Thread):
    """Sends the start of a request, then a byte now and then, until it is to end."""

    def __init__(self, address: str, end: threading.Event) -> None:
        super().__init__()
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._end = end
        self.times_closed = 0

    def run(self) -> None:
        while not self._end.is_set():
            try:
                with socket.create_connection(self._address, timeout=60) as connection:
                    self._send(connection)
            except OSError:
                self.times_closed += 1

    def _send(self, connection: socket.socket) -> None:
        connection.settimeout(TRICKLE_SECONDS)
        rest = memoryview(CLAIMED_BYTES.to_bytes(4, "big") + bytes(BURST_BYTES))
        while not self._end.is_set():
            try:
                rest = rest[connection.send(rest) :] or memoryview(b"\0")
            except TimeoutError:
                continue  # the broker does not read now
            if len(rest) == 1:
                self._end.wait(TRICKLE_SECONDS)


def test_large_produces_get_through_beside_slow_writers(tmp_path: Path) -> None:
    settings = (f"requests.in.flight.max.bytes={8 * MIB}", "plain.enabled=false")
    with BrokerProcess(tmp_path, *settings, f"topic.max.message.bytes={16 * MIB}") as broker:
        end = threading.Event()
        writers = [SlowWriter(broker.address, end) for _ in range(SLOW)]
        for writer in writers:
            writer.start()
        try:
            acked: list[int] = []
            for number in range(OTHERS):
                producer = Producer(
                    {
                        "bootstrap.servers": broker.address,
                        "message.max.bytes": 16 * MIB,
                        "request.timeout.ms": 20_000,
                        "message.timeout.ms": 20_000,
                    }
                )
                producer.produce(
                    "large",
                    bytes([number]) * LARGE_BYTES,
                    partition=0,
                    on_delivery=lambda error, _: acked.append(0 if error is None else error.code()),
                )
                producer.flush(60)
        finally:
            end.set()
            for writer in writers:
                writer.join()
        assert acked == [0] * OTHERS
        broker.ensure_no_traceback()
