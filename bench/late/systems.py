"""The systems: each tells its clients the address of the proxy, and keeps another one for itself."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from bench.results import System
from bench.systems.faircopy import LOCAL_COPY
from bench.systems.kafka import OF_ONE, find_kafka, member, version_of
from bench.systems.kafka_node import KafkaNode, start
from bench.systems.ports import HOST, HeldPorts
from faircopy import __version__
from tests.broker_process import BrokerProcess


class Behind(Protocol):
    """A broker behind the proxy."""

    @property
    def about(self) -> System:
        """Its description in the results."""

    @property
    def port(self) -> int:
        """The port on which it listens."""

    def start(self) -> None:
        """Start it, and return when it serves clients. Raises RuntimeError."""

    def stop(self) -> None:
        """Stop it in an orderly way."""


class FaircopyBehind:
    """faircopy, with its defaults but for plain tables."""

    def __init__(self, directory: Path, proxy_port: int) -> None:
        directory.mkdir(parents=True)
        chosen = {"plain.enabled": "false", "advertised.listeners": f"{HOST}:{proxy_port}"}
        self._broker = BrokerProcess(directory, *(f"{name}={value}" for name, value in chosen.items()))
        self.about = System(
            "faircopy", "faircopy", __version__, LOCAL_COPY, "fsync", {"plain.enabled": "false"}
        )

    @property
    def port(self) -> int:
        return int(self._broker.address.rsplit(":", 1)[1])

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()


class KafkaBehind:
    """Apache Kafka with its defaults. What it sends to itself, markers and checks of transactions, goes
    through a listener of its own. Raises Unavailable if Kafka is not available.
    """

    def __init__(self, directory: Path, proxy_port: int) -> None:
        jars = find_kafka()
        self._ports = HeldPorts(3)  # for as long as this object lives
        self.port, own_port, controller_port = self._ports.numbers
        properties = {
            **member(1, [self.port], [controller_port]),
            "listeners": (
                f"PLAINTEXT://{HOST}:{self.port},OWN://{HOST}:{own_port},CONTROLLER://{HOST}:{controller_port}"
            ),
            "advertised.listeners": f"PLAINTEXT://{HOST}:{proxy_port},OWN://{HOST}:{own_port}",
            "inter.broker.listener.name": "OWN",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OWN:PLAINTEXT",
            **OF_ONE,
        }
        self._node = KafkaNode(directory, jars, properties)
        self.about = System("Apache Kafka", "kafka", version_of(jars), "markers", "os", {})

    def start(self) -> None:
        start(f"{HOST}:{self.port}", [self._node])

    def stop(self) -> None:
        self._node.end(signal.SIGTERM)


SYSTEMS: dict[str, Callable[[Path, int], Behind]] = {"faircopy": FaircopyBehind, "kafka": KafkaBehind}
