"""Apache Kafka: three nodes that each are broker and controller, with three replicas of everything.

A message is acked when all replicas in sync have it, of which there must be two. Nothing is fsynced before
that, which is Kafka's default. All other settings are defaults, too, but for the heap: half a GiB each, so
that three fit where one fitted.
"""

from __future__ import annotations

import signal
from pathlib import Path

from bench.results import System
from bench.systems.kafka import find_kafka, member, version_of
from bench.systems.kafka_node import KafkaNode, start
from bench.systems.ports import HeldPorts

BROKERS = 3
HEAP = ("-Xmx512M", "-Xms512M")
OF_THREE = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class KafkaSet:
    """Three brokers of Apache Kafka. Raises Unavailable if Kafka is not available."""

    def __init__(self, directory: Path) -> None:
        jars = find_kafka()
        self._ports = HeldPorts(2 * BROKERS)
        ports, controller_ports = self._ports.numbers[:BROKERS], self._ports.numbers[BROKERS:]
        self.address = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.about = System("kafka set", "kafka", version_of(jars), "markers", "os", OF_THREE)
        self._nodes = {}
        for number in range(1, BROKERS + 1):
            properties = {**member(number, ports, controller_ports), **OF_THREE}
            self._nodes[number] = KafkaNode(directory / f"node-{number}", jars, properties, HEAP)

    @property
    def processes(self) -> dict[str, int]:
        return {f"broker {number}": node.pid for number, node in self._nodes.items()}

    def start(self) -> None:
        start(self.address, list(self._nodes.values()))

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        for node in self._nodes.values():
            node.end(number)
