"""Apache Kafka: one node, with its own defaults.

Only these settings differ from the defaults: those that a single node needs (KRaft with itself as quorum,
internal topics with one replica), listening on loopback only, and the settings of the caller.
"""

from __future__ import annotations

import signal
from pathlib import Path

from bench.results import System
from bench.systems.kafka_node import KafkaNode, start
from bench.systems.maven import jars_of, java
from bench.systems.ports import HeldPorts

KAFKA = jars_of("kafka", Path(__file__).parent / "kafka" / "pom.xml")

OF_ONE = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}

# Settings whose names differ between a topic and a broker (where they apply to all topics).
OF_ALL_TOPICS = {"flush.messages": "log.flush.interval.messages", "flush.ms": "log.flush.interval.ms"}


def find_kafka() -> Path:
    """The directory with Kafka's jars. Raises Unavailable if nobody has fetched them, or without a Java."""
    java()
    return KAFKA.find()


def member(number: int, ports: list[int], controller_ports: list[int]) -> dict[str, object]:
    """The properties of one node, from 1 on, of as many as there are ports: each is broker and controller."""
    voters = (f"{each}@127.0.0.1:{port}" for each, port in enumerate(controller_ports, start=1))
    port, controller_port = ports[number - 1], controller_ports[number - 1]
    return {
        "process.roles": "broker,controller",
        "node.id": number,
        "controller.quorum.voters": ",".join(voters),
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }


class Kafka:
    """A broker of Apache Kafka. Settings are NAME=VALUE, with the names of broker settings or of topic
    settings.

    With "flush.messages=1" it forces each batch to disk before the ack, and is called "kafka fsync"; by
    default it leaves that to the operating system. Raises Unavailable if Kafka is not available.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        jars = find_kafka()
        self._ports = HeldPorts(2)  # for as long as this object lives, also while the broker is down
        port, controller_port = self._ports.numbers
        self.address = f"127.0.0.1:{port}"
        chosen = dict(setting.split("=", 1) for setting in settings)
        is_forced = chosen.get("flush.messages") == "1"
        self.about = System(
            "kafka fsync" if is_forced else "kafka",
            "kafka",
            version_of(jars),
            "markers",
            "fsync" if is_forced else "os",
            chosen,
        )
        of_broker = {OF_ALL_TOPICS.get(name, name): value for name, value in chosen.items()}
        properties = {**member(1, [port], [controller_port]), **OF_ONE, **of_broker}
        self._node = KafkaNode(directory, jars, properties)

    @property
    def pid(self) -> int:
        return self._node.pid

    @property
    def processes(self) -> dict[str, int]:
        return {"broker": self.pid}

    @property
    def data_directory(self) -> Path:
        return self._node.data_directory

    def log_directories(self, topic: str) -> list[Path]:
        return sorted(self.data_directory.glob(f"{topic}-[0-9]*"))

    def topic_directories(self, topic: str) -> list[Path]:
        return self.log_directories(topic)

    @property
    def log(self) -> str:
        """The broker's log over all its starts."""
        return self._node.log

    def start(self) -> None:
        """Start it, and return when it has answered a client's request for metadata. Raises RuntimeError."""
        start(self.address, [self._node])

    def stop(self) -> None:
        self._node.end(signal.SIGTERM)

    def kill(self) -> None:
        self._node.end(signal.SIGKILL)


def version_of(jars: Path) -> str:
    """The version of Kafka among its jars, by the name of the broker's own. Raises RuntimeError."""
    for jar in jars.glob("kafka_2.13-*.jar"):
        return jar.stem.removeprefix("kafka_2.13-")
    raise RuntimeError(f"there is no Kafka in {jars}: delete it, and run `make fetch`")
